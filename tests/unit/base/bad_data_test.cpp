#include "base/bad_data.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace vpp {
namespace {

TEST(BadData, NamesTheSourceFirst) {
    try {
        refuse_data("a.npy: header", "a text is missing");
        FAIL() << "it went on";
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::BadData);
        EXPECT_STREQ(error.what(), "a.npy: header: a text is missing");
    }
}

}  // namespace
}  // namespace vpp
