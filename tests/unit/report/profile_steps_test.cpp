#include "report/profile_steps.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace vpp {
namespace {

std::string problem(const std::string& text) {
    try {
        parse_profile_steps(text);
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::CommandLine);
        return error.what();
    }
    return "";
}

TEST(ProfileSteps, ACountIsBehindTheFirstTwo) {
    const StepRange steps = profiled_steps(parse_profile_steps("5"), 0, 100);
    EXPECT_EQ(steps.first, 3);
    EXPECT_EQ(steps.last, 7);
    const StepRange resumed = profiled_steps(parse_profile_steps("5"), 40, 100);
    EXPECT_EQ(resumed.first, 43);
    EXPECT_EQ(resumed.last, 47);
}

TEST(ProfileSteps, ARangeIsMeantAsItStands) {
    const StepRange steps = profiled_steps(parse_profile_steps("10..12"), 0, 100);
    EXPECT_EQ(steps.first, 10);
    EXPECT_EQ(steps.last, 12);
    EXPECT_TRUE(steps.contains(10) && steps.contains(12) && !steps.contains(13) && !steps.contains(9));
    EXPECT_FALSE(StepRange().contains(0));
}

TEST(ProfileSteps, WhatTheRunDoesNotDoIsLeftOut) {
    EXPECT_EQ(profiled_steps(parse_profile_steps("5"), 0, 4).last, 4);
    EXPECT_EQ(profiled_steps(parse_profile_steps("10..12"), 11, 100).first, 12);
}

TEST(ProfileSteps, NothingLeftIsSaidWithTheStepsThatThereAre) {
    try {
        profiled_steps(parse_profile_steps("10..12"), 20, 30);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::CommandLine);
        EXPECT_STREQ(error.what(),
                     "--profile 10..12: nothing to profile: this run does the steps 21 to 30; name steps "
                     "as in 30..30");
    }
    EXPECT_THROW(profiled_steps(parse_profile_steps("5"), 0, 2), Error);
}

TEST(ProfileSteps, OtherTextsAreRefusedWithWhatIsExpected) {
    for (const char* text :
         {"", "x", "0", "-1", "1.5", "3..", "..3", "1..2..3", " 5", "5 ", "1...3", "+5", "99999999999999999999"}) {
        EXPECT_EQ(problem(text), "--profile " + std::string(text) +
                                     ": is no number of steps (expected 5 for five steps after the first two, or "
                                     "10..12 for these)");
    }
    EXPECT_EQ(problem("12..10"), "--profile 12..10: the last step is before the first; try 10..12");
    EXPECT_EQ(problem("1..1001"), "--profile 1..1001: are 1001 steps (expected at most 1000: each is a file)");
    EXPECT_EQ(problem("1..1000"), "");
    EXPECT_EQ(problem("1000"), "");
    EXPECT_NE(problem("1001"), "");
}

}  // namespace
}  // namespace vpp
