#include "launch/supervisor.hpp"

#include <gtest/gtest.h>

#include <deque>

namespace vpp {
namespace {

using Lines = std::vector<std::string>;

/// What a start of the job does: how it ends, and where the run folder stands afterwards.
struct Start {
    ChildEnd end;
    RunProgress progress;
};

ChildEnd code(int value) {
    return {.code = value};
}

RunProgress at(int64_t step, std::optional<int64_t> checkpoint = std::nullopt) {
    return {.step = step, .checkpoint = checkpoint, .metrics_bytes = static_cast<uint64_t>(100 * step)};
}

/// Plays a list of starts and notes what the supervisor does.
class Scene {
  public:
    explicit Scene(std::deque<Start> starts) : starts_(std::move(starts)) {}

    int supervise(const SupervisedJob& job) {
        SupervisorHooks hooks;
        hooks.run = [this](const Lines& line) {
            lines.push_back(line);
            const Start start = starts_.front();
            starts_.pop_front();
            now_ = start.progress;
            return start.end;
        };
        hooks.look = [this] { return now_; };
        hooks.trial = [this] {
            ++trials;
            return trouble;
        };
        hooks.say = [this](const std::string& text) { said.push_back(text); };
        hooks.is_holder = [this] { return is_holder; };
        hooks.told = [this] { return told; };
        hooks.keep = [this](const RunEnd& end) { kept.push_back(std::to_string(end.exit_code) + ": " + end.text); };
        hooks.is_stop_asked = [this] { return stop; };
        return vpp::supervise(job, hooks);
    }

    std::vector<Lines> lines;
    Lines said, kept;
    int trials = 0;
    std::optional<std::string> trouble;
    bool stop = false, is_holder = true;
    std::optional<RunEnd> told;

  private:
    std::deque<Start> starts_;
    RunProgress now_;
};

SupervisedJob job_with(int max_restarts, const std::string& resume = "auto") {
    return {.line = {"mpirun", "train"}, .manner = StopManner::Save, .max_restarts = max_restarts, .resume = resume};
}

TEST(Supervisor, AGoodEndIsQuiet) {
    Scene stage({{code(0), at(30, 30)}});
    EXPECT_EQ(stage.supervise(job_with(3)), 0);
    EXPECT_TRUE(stage.said.empty());
    EXPECT_EQ(stage.trials, 0);
}

TEST(Supervisor, StartsAgainUntilItIsDone) {
    Scene stage({{code(137), at(5)}, {code(75), at(9, 8)}, {code(0), at(30, 30)}});
    EXPECT_EQ(stage.supervise(job_with(3)), 0);
    ASSERT_EQ(stage.lines.size(), 3U);
    EXPECT_EQ(stage.lines[2], (Lines{"mpirun", "train"}));
    EXPECT_EQ(stage.said.back(), "lost at step 9; restart 2 of 3");
}

TEST(Supervisor, OnlyWhatTheRanksCannotHaveToldIsKept) {
    Scene killed({{code(137), at(5)}, {code(75), at(9)}, {code(79), at(12)}});
    EXPECT_EQ(killed.supervise(job_with(3)), 79);
    EXPECT_EQ(killed.kept, (Lines{"75: a rank was killed by signal 9 (SIGKILL): by somebody, or by the kernel when "
                                  "memory ran out (dmesg says so)"}));
    Scene beside_another({{code(137), at(5)}});
    beside_another.is_holder = false;
    EXPECT_EQ(beside_another.supervise(job_with(0)), 75);
    EXPECT_TRUE(beside_another.kept.empty()) << "the folder is another job's";
}

TEST(Supervisor, ASecondInterruptBehindTheSaveIsAStopThatSaved) {
    const ChildEnd ended{.code = 1, .stop_asked = true, .ended_at_once = true};
    for (const bool is_holder : {true, false}) {
        Scene stage({{ended, at(5, 5)}});
        stage.is_holder = is_holder;
        stage.told = RunEnd{85, "stopped after step 5"};
        EXPECT_EQ(stage.supervise(job_with(0)), is_holder ? 85 : 130);
    }
}

TEST(Supervisor, AJobThatDiesBeforeItsFirstStepIsStartedTwiceNotForEver) {
    Scene stage({{code(137), {}}, {code(137), {}}, {code(137), {}}});
    EXPECT_EQ(stage.supervise(job_with(100)), 75);
    EXPECT_EQ(stage.lines.size(), 2U);
    EXPECT_EQ(stage.trials, 2);
}

TEST(Supervisor, AJobThatDiesAtTheSameStepEndsToo) {
    Scene stage({{code(139), at(5)}, {code(139), at(5)}, {code(139), at(5)}});
    EXPECT_EQ(stage.supervise(job_with(100)), 75);
    EXPECT_EQ(stage.lines.size(), 2U);
}

TEST(Supervisor, StepsOfAnEarlierRunAreNoStepsOfThisOne) {
    Scene stage({{code(0), at(100)}, {code(137), at(100)}, {code(137), at(30)}, {code(0), at(60, 60)}});
    EXPECT_EQ(stage.supervise(job_with(0)), 0);
    EXPECT_EQ(stage.supervise(job_with(3, "no")), 0);
    EXPECT_EQ(stage.said[1], "lost before the first step; restart 1 of 3");
    EXPECT_EQ(stage.said.back(), "lost at step 30; restart 2 of 3");
}

TEST(Supervisor, WhatMpirunRefusesIsNotTriedAgain) {
    Scene stage({{code(1), {}}});
    stage.trouble = "not enough slots";
    EXPECT_EQ(stage.supervise(job_with(3)), 69);
    EXPECT_EQ(stage.said, (Lines{"mpirun does not start these ranks: not enough slots"}));
}

TEST(Supervisor, AStopDuringARestartIsHeard) {
    Scene stage({{code(137), at(5)}});
    stage.stop = true;
    EXPECT_EQ(stage.supervise(job_with(3)), 85);
    EXPECT_EQ(stage.lines.size(), 1U);
}

TEST(Supervisor, ARunThatBeganAnewGoesOnFromItsOwnCheckpoints) {
    Scene stage({{code(137), at(5, 4)}, {code(0), at(30, 30)}});
    EXPECT_EQ(stage.supervise(job_with(3, "no")), 0);
    EXPECT_EQ(stage.lines[1], (Lines{"mpirun", "train", "--set", "checkpoint.resume=auto"}));
}

TEST(Supervisor, WithoutACheckpointOfItsOwnItBeginsAsItWasTold) {
    Scene stage({{code(137), at(5)}, {code(0), at(30, 30)}});
    EXPECT_EQ(stage.supervise(job_with(3, "runs/other/checkpoints/step-00000010")), 0);
    EXPECT_EQ(stage.lines[1], (Lines{"mpirun", "train"}));
}

TEST(Supervisor, CommandsThatSaveNothingAreNotStartedAgain) {
    Scene stage({{code(137), {}}});
    SupervisedJob job = job_with(3);
    job.manner = StopManner::End;
    EXPECT_EQ(stage.supervise(job), 75);
    EXPECT_EQ(stage.said.size(), 1U);
}

}  // namespace
}  // namespace vpp
