#include "launch/sweep_folder.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "unit/report/scratch.hpp"

namespace vpp {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPlan = "[optimizer]\nlr = 0.1\n[train]\nsteps = 2\n[run]\ndir = \"a\"\n";
constexpr const char* kStep = R"({"event":"step","step":2,"total_steps":2,"loss":1.5})";
constexpr const char* kSave = R"({"event":"save","step":2,"size_bytes":1,"seconds":1})";

class SweepFolders : public test::Scratch {
  protected:
    void put(const std::string& name, const std::string& text) { Scratch::put(folder_ / name, text); }
    void put_run(const std::string& plan = kPlan) {
        put("metrics.jsonl", std::string(kStep) + "\n" + kSave + "\n");
        put("plan.toml", plan);
    }
    SweepFolder look(const std::string& plan = kPlan) const {
        return look_at_sweep_folder(folder_, settings_from_plan(plan));
    }
};

TEST_F(SweepFolders, WithoutARunItIsFresh) {
    EXPECT_EQ(look().progress, SweepProgress::Fresh);
    put("plan.toml", kPlan);
    EXPECT_EQ(look().progress, SweepProgress::Fresh);
    EXPECT_EQ(look_at_sweep_folder(folder_ / "none", {}).progress, SweepProgress::Fresh);
}

TEST_F(SweepFolders, ItIsFinishedWithItsLastStepSavedUnderTheSameSettings) {
    put_run();
    EXPECT_EQ(look().progress, SweepProgress::Finished);
    EXPECT_EQ(look("[optimizer]\nlr = 0.1\n[train]\nsteps = 2\n[run]\ndir = \"b\"\n[report]\nevery = 1\n").progress,
              SweepProgress::Finished);
}

TEST_F(SweepFolders, WhatIsNotAtItsEndGoesOn) {
    put_run();
    EXPECT_EQ(look("[optimizer]\nlr = 0.1\n[train]\nsteps = 3\n").progress, SweepProgress::Begun);
    put("metrics.jsonl", std::string(kStep) + "\n");
    EXPECT_EQ(look().progress, SweepProgress::Begun);
    put("metrics.jsonl", "damage\n");
    EXPECT_EQ(look().progress, SweepProgress::Begun);
    put("metrics.jsonl", "");
    EXPECT_EQ(look().progress, SweepProgress::Begun);
}

TEST_F(SweepFolders, OtherSettingsAreNamed) {
    put_run();
    const SweepFolder other = look("[optimizer]\nlr = 0.2\n[train]\nsteps = 2\nseed = 1\n");
    EXPECT_EQ(other.progress, SweepProgress::Other);
    EXPECT_EQ(other.difference, "optimizer.lr = 0.1, here 0.2");
    EXPECT_EQ(look("[optimizer]\nlr = 0.1\n[train]\nsteps = 2\nseed = 1\n").difference, "train.seed = nothing, here 1");
}

TEST_F(SweepFolders, ADamagedPlanIsLeftToTheCheckpoints) {
    put_run("[optimizer\n");
    EXPECT_EQ(look().progress, SweepProgress::Begun);
}

}  // namespace
}  // namespace vpp
