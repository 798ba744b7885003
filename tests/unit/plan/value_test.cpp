#include "plan/value.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace vpp {
namespace {

TEST(Value, IsWrittenAsToml) {
    EXPECT_EQ(toml_text(true), "true");
    EXPECT_EQ(toml_text(int64_t{-3}), "-3");
    EXPECT_EQ(toml_text(1.0), "1.0");
    EXPECT_EQ(toml_text(std::string("a\"b\\c")), R"("a\"b\\c")");
    EXPECT_EQ(toml_text(std::vector<std::string>{"a", "b"}), R"(["a", "b"])");
    EXPECT_EQ(toml_text(std::vector<double>{0.9, 0.999}), "[0.9, 0.999]");
    EXPECT_EQ(toml_text(NamedTexts{}), "{}");
    EXPECT_EQ(toml_text(NamedTexts{{"x", "1"}, {"a b", "2"}}), R"({ x = "1", "a b" = "2" })");
}

TEST(Value, NumbersSurviveToTheBit) {
    for (const double number : {0.1, 3e-4, 1e-300, 1e300, 1.0 / 3, 5e-324, 0.0}) {
        EXPECT_EQ(std::strtod(toml_text(number).c_str(), nullptr), number);
    }
}

TEST(Value, ControlCharactersAreEscaped) {
    EXPECT_EQ(toml_quoted("a\n\x1b\x7f"), R"("a\u000A\u001B\u007F")");
}

}  // namespace
}  // namespace vpp
