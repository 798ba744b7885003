#include "launch/job_end.hpp"

#include <gtest/gtest.h>

namespace vpp {
namespace {

/// A job that nobody asked to stop.
JobEnd ended(int code, bool has_begun = true) {
    return {.child = {.code = code}, .has_begun = has_begun, .is_saved = false};
}

JobEnd asked(int code, bool has_begun, bool is_saved) {
    return {.child = {.code = code, .stop_asked = true}, .has_begun = has_begun, .is_saved = is_saved};
}

TEST(JobEnd, CodesOfVppStayWithoutAWord) {
    for (int code : {0, 2, 65, 66, 69, 70, 71, 73, 74, 75, 76, 77, 78, 79, 80, 85, 130}) {
        EXPECT_EQ(judge(ended(code)).code, code);
        EXPECT_EQ(judge(ended(code)).text, "") << code;
        EXPECT_FALSE(needs_trial(ended(code, false))) << code;
    }
}

TEST(JobEnd, AKilledRankIsALostOne) {
    const Verdict killed = judge(ended(137));
    EXPECT_EQ(killed.code, 75);
    EXPECT_EQ(killed.text,
              "a rank was killed by signal 9 (SIGKILL): by somebody, or by the kernel when memory ran out (dmesg says "
              "so)");
    EXPECT_EQ(judge(ended(139)).code, 75);
    EXPECT_EQ(judge(ended(139)).text,
              "a rank crashed (signal 11), which is a bug in vpp, in a library or in the hardware");
    EXPECT_EQ(judge(ended(143)).text, "a rank was killed by signal 15");
}

TEST(JobEnd, MpirunsOwnTroubleIsToldFromALostRank) {
    EXPECT_FALSE(needs_trial(ended(1, true)));
    EXPECT_EQ(judge(ended(1, true)).code, 75);
    EXPECT_EQ(judge(ended(1, true)).text, "mpirun ended with code 1, which none of the ranks gave");
    EXPECT_TRUE(needs_trial(ended(1, false)));
    const Verdict refused = judge(ended(1, false), "not enough slots");
    EXPECT_EQ(refused.code, 69);
    EXPECT_EQ(refused.text, "mpirun does not start these ranks: not enough slots");
    EXPECT_EQ(judge(ended(137, false), std::nullopt).code, 75);
}

TEST(JobEnd, AStopIsAStopWhateverMpirunMakesOfIt) {
    // SIGUSR1 before the ranks listen ends them.
    EXPECT_EQ(judge(asked(138, false, true)).code, 85);
    // A batch system sends SIGTERM to mpirun too, which then returns 1.
    EXPECT_EQ(judge(asked(1, true, true)).code, 85);
    EXPECT_EQ(judge(asked(1, true, false)).code, 130);
    EXPECT_EQ(judge(asked(75, true, false)).code, 75);
    EXPECT_FALSE(needs_trial(asked(1, false, true)));
}

TEST(JobEnd, AnMpirunThatHangsIsALostRankUnlessAStopWasAskedFor) {
    JobEnd end{.child = {.code = 137, .hang = Hang::DeadChild}};
    EXPECT_FALSE(needs_trial(end));
    EXPECT_EQ(judge(end).code, 75);
    EXPECT_EQ(judge(end).text, "mpirun hung: it did not notice the end of a rank for 30 s, and was killed");
    end.child.hang = Hang::OtherHosts;
    EXPECT_FALSE(needs_trial(end));
    EXPECT_EQ(judge(end).code, 75);
    EXPECT_EQ(
        judge(end).text,
        "mpirun still waited for other hosts 10 s after the last rank of this one had ended, and was killed: a host "
        "or the link to it is lost");
    end.child.hang = Hang::LeftBehind;
    EXPECT_EQ(judge(end).code, 75);
    EXPECT_EQ(judge(end).text,
              "a rank was still stopped (SIGSTOP) 30 s after all others of this host had ended, and was killed");
    end.child.stop_asked = end.has_begun = end.is_saved = true;
    EXPECT_EQ(judge(end).code, 85);
}

TEST(JobEnd, AnotherHostThatEndsIsALostRank) {
    for (int code : {205, 255}) {
        const JobEnd end{.child = {.code = code}, .has_begun = true};
        EXPECT_EQ(judge(end).code, 75);
        EXPECT_EQ(judge(end).text,
                  "mpirun has lost another host: the host, its daemon orted there or the connection to it has ended");
    }
    EXPECT_EQ(judge({.child = {.code = 205}}, "no route").code, 69) << "it never came so far";
}

TEST(JobEnd, ASecondInterruptIs130) {
    for (int code : {1, 75, 137}) {
        const JobEnd end{.child = {.code = code, .stop_asked = true, .ended_at_once = true}, .has_begun = true};
        EXPECT_EQ(judge(end).code, 130);
    }
}

TEST(JobEnd, ASecondInterruptBehindTheEndChangesNothing) {
    for (int code : {0, 85}) {
        JobEnd end{.child = {.code = code, .stop_asked = true, .ended_at_once = true}, .has_begun = true};
        EXPECT_EQ(judge(end).code, code);
        end.child.code = 1;  // of an mpirun that got SIGTERM
        EXPECT_EQ(judge(end).code, 130);
        end.told = code;
        EXPECT_EQ(judge(end).code, code);
        EXPECT_EQ(judge(end).text, "");
    }
    const JobEnd failed{.child = {.code = 1, .stop_asked = true, .ended_at_once = true}, .told = 79};
    EXPECT_EQ(judge(failed).code, 130);
}

}  // namespace
}  // namespace vpp
