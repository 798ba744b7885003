#include "launch/plan_findings.hpp"

#include <gtest/gtest.h>

namespace vpp {
namespace {

using enum FindingLevel;

constexpr int64_t kMiB = int64_t{1} << 20, kGiB = int64_t{1} << 30;

void expect_of_plan(const Finding& finding, FindingLevel level, const std::string& text, const std::string& remedy = "",
                    int code = 0) {
    EXPECT_EQ(finding.level, level) << finding.text;
    EXPECT_EQ(finding.text, text);
    EXPECT_EQ(finding.remedy, remedy);
    EXPECT_EQ(finding.code, code);
}

TEST(PlanFindings, ErrorsKeepTheirTextAndCode) {
    const Error error(ErrorKind::Plan, "unknown key 'fiel'", SourcePosition{"p.toml", 2, 1, "fiel = 1"});
    const Finding finding = judge_error("plan", error);
    EXPECT_EQ(finding.level, Bad);
    EXPECT_EQ(finding.code, 78);
    EXPECT_EQ(finding.text, error.what());
}

TEST(PlanFindings, AGoodPlan) {
    PlanFacts facts{.file = "p.toml", .ranks = 8, .pp = 4, .dp = 2, .steps = 300, .epochs = {}, .batch = 16};
    expect_of_plan(judge_plan(facts), Ok, "p.toml: 8 ranks (pp 4 x dp 2), 300 steps of 16 samples");
    facts.steps = std::nullopt;
    facts.epochs = 2;
    expect_of_plan(judge_plan(facts), Ok, "p.toml: 8 ranks (pp 4 x dp 2), 2 epochs, batches of 16 samples");
}

TEST(PlanFindings, WhatItGoesOnFrom) {
    ResumeFacts facts{.run = "runs/gpt", .resume = "auto", .step = {}, .steps = 300};
    expect_of_plan(judge_resume(facts), Ok, "runs/gpt: begins with the first step, since no checkpoint is there");
    facts.has_parts = true;
    expect_of_plan(judge_resume(facts), Note,
                   "runs/gpt: its checkpoints lack shards, and are whole only where other hosts have them",
                   "a run.dir on a disk that all hosts share, or bring the shards here");
    facts.step = 100;
    expect_of_plan(judge_resume(facts), Ok, "runs/gpt: goes on after step 100");
    facts.step = 300;
    expect_of_plan(judge_resume(facts), Note, "runs/gpt: goes on after step 300 of 300, so nothing is left to do",
                   "more train.steps, or another run.dir");
    facts.steps = std::nullopt;
    expect_of_plan(judge_resume(facts), Ok, "runs/gpt: goes on after step 300");
    facts.resume = "no";
    expect_of_plan(judge_resume(facts), Ok, "runs/gpt: begins anew, as checkpoint.resume = \"no\" says");
}

TEST(PlanFindings, WhatWasPrepared) {
    PreparedFacts facts;
    facts.model = "gpt.pt";
    facts.ops = 123;
    facts.parameters = 900'000;
    facts.legal_cuts = 99;
    facts.warnings = {"it was traced"};
    facts.data = "text";
    facts.samples = 12000;
    facts.schedule = "1F1B";
    facts.stages = 4;
    facts.bubble = 0.2727;
    const auto findings = judge_prepared(facts);
    ASSERT_EQ(findings.size(), 4U);
    expect_of_plan(findings[0], Ok, "gpt.pt: 123 ops, 900.0 K parameters, 99 places to cut");
    expect_of_plan(findings[1], Note, "it was traced");
    expect_of_plan(findings[2], Ok, "text, 12000 samples, none to validate");
    expect_of_plan(findings[3], Ok, "1F1B, 4 stages, bubble 27.3 %");
}

TEST(PlanFindings, Memory) {
    const MemoryNeed need{.ranks = 4, .state_bytes = kGiB, .activation_bytes = 2 * kGiB, .program_bytes = 256 * kMiB};
    const std::string sums = "4 ranks take up to 4.0 GiB (state 1.0 GiB, activations 2.0 GiB, programs 1.0 GiB), ";
    const std::string remedy =
        "more pipeline.num_microbatches, pipeline.recompute.what = \"stage\", or fewer ranks on this host";
    expect_of_plan(judge_memory(need, 8 * kGiB), Ok, sums + "8.0 GiB available");
    expect_of_plan(judge_memory(need, 3 * kGiB), Note, sums + "3.0 GiB available", remedy);
    expect_of_plan(judge_memory(need, kGiB), Bad, sums + "1.0 GiB available", remedy, 71);
}

TEST(PlanFindings, MemoryOfRanksThatMpirunPlaces) {
    MemoryNeed need{.ranks = 4, .state_bytes = 9 * kGiB, .program_bytes = 256 * kMiB, .fullest_bytes = 3 * kGiB};
    const std::string text = "where 4 ranks run is for mpirun to say; the fullest takes up to 3.0 GiB, this host has ";
    expect_of_plan(judge_spread_memory(need, 4 * kGiB), Ok, text + "4.0 GiB available");
    expect_of_plan(judge_spread_memory(need, kGiB), Note, text + "1.0 GiB available",
                   "more pipeline.num_microbatches, or pipeline.recompute.what = \"stage\"");
    need.ranks = 1;
    EXPECT_TRUE(judge_spread_memory(need, kGiB).text.starts_with("where 1 rank runs is for mpirun to say"));
}

DiskFacts disk_with(int64_t free_bytes) {
    DiskFacts disk;
    disk.run_folder = "runs/gpt";
    disk.bytes_per_second = 500.0 * kMiB;
    disk.free_bytes = free_bytes;
    return disk;
}

TEST(PlanFindings, Disk) {
    const SaveNeed need{.checkpoint_bytes = kGiB, .keep = 3, .kept = 1};
    const std::string room = "; a checkpoint takes 1.0 GiB, room is wanted for 3";
    expect_of_plan(judge_disk(disk_with(10 * kGiB), need), Ok,
                   "runs/gpt: 500.0 MiB/s with fsync, 10.0 GiB free" + room);
    expect_of_plan(judge_disk(disk_with(2 * kGiB), need), Note, "runs/gpt: 500.0 MiB/s with fsync, 2.0 GiB free" + room,
                   "make room, or a smaller checkpoint.keep");
    expect_of_plan(judge_disk(disk_with(kMiB), need), Bad, "runs/gpt: 500.0 MiB/s with fsync, 1.0 MiB free" + room,
                   "make room, or name another folder: --set run.dir=FOLDER", 74);
    expect_of_plan(judge_disk(disk_with(kMiB), {}), Ok, "runs/gpt: 500.0 MiB/s with fsync, 1.0 MiB free");
    DiskFacts slow = disk_with(10 * kGiB);
    slow.bytes_per_second = 10.0 * kMiB;
    expect_of_plan(judge_disk(slow, need), Note,
                   "runs/gpt: 10.0 MiB/s with fsync, 10.0 GiB free" + room + "; that is slow: 1 min 42 s a save",
                   "a run.dir on a local disk, or a larger checkpoint.every");
}

TEST(PlanFindings, ADiskThatCannotBeWritten) {
    DiskFacts disk = disk_with(0);
    disk.problem = "/proc: Permission denied";
    expect_of_plan(judge_disk(disk, {}), Bad, "runs/gpt: nothing can be written there, /proc: Permission denied",
                   "name a folder that can be written: --set run.dir=FOLDER", 73);
    disk.is_full = true;
    expect_of_plan(judge_disk(disk, {}), Bad, "runs/gpt: nothing can be written there, /proc: Permission denied",
                   "make room, or name another folder: --set run.dir=FOLDER", 74);
}

}  // namespace
}  // namespace vpp
