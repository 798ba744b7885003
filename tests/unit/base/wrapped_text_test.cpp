#include "base/wrapped_text.hpp"

#include <gtest/gtest.h>

namespace vpp {
namespace {

using Lines = std::vector<std::string>;

TEST(WrappedText, BreaksAtSpacesAndNowhereElse) {
    EXPECT_EQ(wrapped_lines("one two three", 7), (Lines{"one two", "three"}));
    EXPECT_EQ(wrapped_lines("one two three", 6), (Lines{"one", "two", "three"}));
    EXPECT_EQ(wrapped_lines("one two three", 13), (Lines{"one two three"}));
    EXPECT_EQ(wrapped_lines("  one   two ", 20), (Lines{"one two"}));
    EXPECT_EQ(wrapped_lines("a verylongword b", 4), (Lines{"a", "verylongword", "b"}));
    EXPECT_EQ(wrapped_lines("", 10), (Lines{""}));
    EXPECT_EQ(wrapped_lines("one two three", 7, 2), (Lines{"one two", "  three"}));
    EXPECT_EQ(wrapped_lines("one verylongword", 8, 2), (Lines{"one", "  verylongword"}));
}

TEST(WrappedText, IndentCountsForTheWidth) {
    EXPECT_EQ(indented_text("one two three", 2, 9), "  one two\n  three\n");
    EXPECT_EQ(indented_text("", 2, 9), "\n");
}

TEST(WrappedText, TwoColumns) {
    EXPECT_EQ(two_columns("key", "one two three", 2, 8, 16), "  key   one two\n        three\n");
    EXPECT_EQ(two_columns("longkey", "one", 2, 8, 16), "  longkey\n        one\n") << "no room between the columns";
    EXPECT_EQ(two_columns("sixkey", "one", 1, 8, 16), " sixkey one\n");
    EXPECT_EQ(two_columns("key", "", 2, 8, 16), "  key\n");
}

}  // namespace
}  // namespace vpp
