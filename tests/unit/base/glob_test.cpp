#include "base/glob.hpp"

#include <gtest/gtest.h>

#include <string>

namespace vpp {
namespace {

TEST(Glob, WithoutStarsItIsEquality) {
    EXPECT_TRUE(glob_matches("l1", "l1"));
    EXPECT_FALSE(glob_matches("l1", "l10"));
    EXPECT_FALSE(glob_matches("l1", "l"));
    EXPECT_TRUE(glob_matches("", ""));
    EXPECT_FALSE(glob_matches("", "a"));
    EXPECT_TRUE(glob_matches("a[1].b", "a[1].b"));
}

TEST(Glob, AStarTakesAnyRunWithDots) {
    EXPECT_TRUE(glob_matches("*", ""));
    EXPECT_TRUE(glob_matches("*.bias", "blocks.0.attn.bias"));
    EXPECT_FALSE(glob_matches("*.bias", "bias"));
    EXPECT_TRUE(glob_matches("*ln*", "blocks.0.ln1.weight"));
    EXPECT_TRUE(glob_matches("a*b*c", "a.b.b.c"));
    EXPECT_FALSE(glob_matches("a*b*c", "a.c.b"));
    EXPECT_TRUE(glob_matches("a**", "a"));
}

TEST(Glob, AQuestionMarkTakesOneCharacter) {
    EXPECT_TRUE(glob_matches("h.?.w", "h.3.w"));
    EXPECT_FALSE(glob_matches("h.?.w", "h.10.w"));
    EXPECT_FALSE(glob_matches("?", ""));
    EXPECT_TRUE(glob_matches("*?", "x"));
}

TEST(Glob, ManyStarsAreNotExponential) {
    std::string pattern;
    for (int i = 0; i < 200; ++i) pattern += "*a";
    EXPECT_FALSE(glob_matches(pattern + "b", std::string(2000, 'a')));
}

TEST(Glob, OneOfSeveralIsEnough) {
    EXPECT_TRUE(any_glob_matches({"a.*", "*.bias"}, "head.bias"));
    EXPECT_FALSE(any_glob_matches({"a.*", "*.bias"}, "head.weight"));
    EXPECT_FALSE(any_glob_matches({}, "head.bias"));
}

}  // namespace
}  // namespace vpp
