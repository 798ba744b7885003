#pragma once
// Errors as values, for tests of what refuses hostile bytes.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>

#include "base/error.hpp"

namespace vpp::test {

/// The error that a call ends with; empty when it ends well. Anything but vpp::Error passes on and fails the test.
inline std::optional<Error> caught_error(const std::function<void()>& call) {
    try {
        call();
        return std::nullopt;
    } catch (const Error& e) {
        return e;
    }
}

/// Expects an Error of that kind whose text holds `part`.
inline void expect_error(ErrorKind kind, const std::string& part, const std::function<void()>& call) {
    const std::optional<Error> error = caught_error(call);
    ASSERT_TRUE(error) << "no error, expected one with '" << part << "'";
    EXPECT_EQ(exit_code(error->kind()), exit_code(kind)) << error->what();
    EXPECT_NE(std::string(error->what()).find(part), std::string::npos) << error->what();
}

}  // namespace vpp::test
