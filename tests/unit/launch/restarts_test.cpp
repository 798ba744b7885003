#include "launch/restarts.hpp"

#include <gtest/gtest.h>

namespace vpp {
namespace {

TEST(Restarts, OnlyALostRankIsAReason) {
    for (int code : {0, 2, 65, 66, 69, 70, 71, 73, 74, 76, 77, 78, 79, 80, 85, 130}) {
        EXPECT_FALSE(choose_restart(code, 10, {}, 5).restart) << code;
        EXPECT_EQ(choose_restart(code, 10, {}, 5).text, "") << code;
    }
    EXPECT_TRUE(choose_restart(75, 10, {}, 5).restart);
}

TEST(Restarts, NoneWithoutTheKey) {
    const RestartChoice choice = choose_restart(75, 10, {}, 0);
    EXPECT_FALSE(choice.restart);
    EXPECT_EQ(choice.text,
              "the same command goes on from the last checkpoint; run.max_restarts = 3 would do that by itself");
    EXPECT_EQ(
        choose_restart(75, 10, {}, 0, "no").text,
        "the same command with --set checkpoint.resume=auto goes on from the last checkpoint; run.max_restarts = 3 "
        "would do that by itself");
}

TEST(Restarts, AtMostSoMany) {
    EXPECT_EQ(choose_restart(75, 10, {}, 2).text, "lost at step 10; restart 1 of 2");
    EXPECT_TRUE(choose_restart(75, 20, {1, 10}, 2).restart);
    const RestartChoice last = choose_restart(75, 30, {2, 20}, 2);
    EXPECT_FALSE(last.restart);
    EXPECT_EQ(last.text, "not started again: run.max_restarts = 2 allows no more");
}

TEST(Restarts, NeverTwiceWithoutANewStep) {
    EXPECT_TRUE(choose_restart(75, -1, {}, 9).restart) << "the first one is free";
    EXPECT_EQ(choose_restart(75, -1, {}, 9).text, "lost before the first step; restart 1 of 9");
    EXPECT_EQ(choose_restart(75, -1, {1, -1}, 9).text,
              "not started again: no new step since the last restart, which was before the first step");
    EXPECT_FALSE(choose_restart(75, 10, {1, 10}, 9).restart);
    EXPECT_FALSE(choose_restart(75, 9, {1, 10}, 9).restart) << "less than before is not new either";
    EXPECT_TRUE(choose_restart(75, 11, {1, 10}, 9).restart);
}

}  // namespace
}  // namespace vpp
