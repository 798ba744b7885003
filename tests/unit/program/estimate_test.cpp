// Costs of ranks against figures worked out by hand.
#include "program/estimate.hpp"

#include <gtest/gtest.h>

#include "schedule/checker.hpp"
#include "schedule/generators.hpp"
#include "schedule/lowering.hpp"
#include "unit/graph/graphs.hpp"

namespace vpp {
namespace {

/// Two ranks, one stage each; stage 0 has 100 trained elements and a buffer of 10, stage 1 a frozen parameter of 50.
Program program_of(int num_microbatches) {
    test::GraphMaker maker;
    const int x = maker.input("x"), w = maker.parameter("w", 100), table = maker.parameter("t", 10, false, true);
    const int frozen = maker.parameter("frozen", 50, false);
    const int a = maker.op("", {x, w, table}, 1000, 8);
    maker.last_op().kept_bytes = 32;
    maker.op("", {a, frozen}, 10, 1);
    maker.last_op().kept_bytes = 4;
    Program program;
    program.mesh = {2, 1, 1};
    program.training.graph = maker.finish();
    program.training.split = make_stages(program.training.graph, {1});
    const auto edges = schedule_edges(program.training.split);
    program.training.schedule = lower(make_schedule("1F1B", 2, 1, num_microbatches), edges);
    check_schedule(program.training.schedule, edges);
    return program;
}

TEST(Estimate, CountsWeightsGradientsAndStates) {
    Plan plan;
    const std::vector<RankEstimate> ranks = estimate_ranks(plan, program_of(4));
    ASSERT_EQ(ranks.size(), 2U);
    EXPECT_EQ(ranks[0].stages, std::vector<int>{0});
    EXPECT_EQ(ranks[0].parameter_bytes, 400);
    EXPECT_EQ(ranks[0].buffer_bytes, 40);
    EXPECT_EQ(ranks[0].gradient_bytes, 400);
    EXPECT_EQ(ranks[0].optimizer_bytes, 800) << "adamw: two states";
    EXPECT_EQ(ranks[1].parameter_bytes, 200);
    EXPECT_EQ(ranks[1].gradient_bytes, 0) << "frozen";
    EXPECT_EQ(ranks[1].optimizer_bytes, 0);
    EXPECT_EQ(ranks[0].flops, 4 * 1000);
    EXPECT_EQ(ranks[0].saved_copy_bytes, 400 + 40 + 800);
    EXPECT_EQ(ranks[0].total_bytes(), 400 + 40 + 400 + 800 + 1240 + ranks[0].activation_bytes);
    plan.checkpoint.background = false;
    EXPECT_EQ(estimate_ranks(plan, program_of(4))[0].saved_copy_bytes, 0);
}

TEST(Estimate, CopiesInHalfPrecisionAreThereOnceForAllMicrobatches) {
    const RankEstimate without = estimate_ranks({}, program_of(4))[0];
    EXPECT_EQ(without.cast_bytes, 0);
    Program program = program_of(4);
    program.training.graph.ops[0].casts = {0, 0};
    program.training.split = make_stages(program.training.graph, {1});
    const RankEstimate with = estimate_ranks({}, program)[0];
    EXPECT_EQ(with.cast_bytes, 200);
    EXPECT_EQ(estimate_ranks({}, program)[1].cast_bytes, 0);
    EXPECT_EQ(with.activation_bytes, without.activation_bytes + 400) << "gradients of both uses, for a moment";
    EXPECT_EQ(with.total_bytes(), without.total_bytes() + 600);
    program.training.split = make_stages(program.training.graph, {1}, {{0, 1}});
    EXPECT_EQ(estimate_ranks({}, program)[0].cast_bytes, 0);
    EXPECT_EQ(program.training.split.segments[0].kept_bytes, 32 + 400) << "what is recomputed has its own";
}

TEST(Estimate, DataThatAreReadAheadCount) {
    Plan plan;
    Program program = program_of(4);
    program.microbatch_size = 3;
    program.fields.fields = {{"x", DType::F32, {4}}};
    EXPECT_EQ(estimate_ranks(plan, program)[0].input_bytes, 4 * 3 * 16) << "a step";
    EXPECT_EQ(estimate_ranks(plan, program)[1].input_bytes, 0) << "it takes none";
    plan.data.read_ahead_bytes = 100;
    EXPECT_EQ(estimate_ranks(plan, program)[0].input_bytes, 2 * 3 * 16);
    const int64_t with = estimate_ranks(plan, program)[0].total_bytes();
    plan.data.read_ahead_bytes = 0;
    EXPECT_EQ(estimate_ranks(plan, program)[0].input_bytes, 0);
    EXPECT_EQ(estimate_ranks(plan, program)[0].total_bytes(), with - 2 * 3 * 16);
}

TEST(Estimate, AStepIsThreeForwardsOfEveryMicrobatchAndReplica) {
    Program program = program_of(4);
    EXPECT_EQ(step_flops(program), 3 * (1000 + 10) * 4);
    program.mesh.dp = 2;
    EXPECT_EQ(step_flops(program), 3 * (1000 + 10) * 4 * 2);
    program.mesh.dp = 1;
    program.replicas_per_rank = 2;
    EXPECT_EQ(step_flops(program), 3 * (1000 + 10) * 4 * 2) << "the reference does the same work";
}

TEST(Estimate, OptimizersDifferInTheirStates) {
    Plan plan;
    const auto states = [&] { return estimate_ranks(plan, program_of(2))[0].optimizer_bytes / 400; };
    plan.optimizer.values.amsgrad = true;
    EXPECT_EQ(states(), 3);
    plan.optimizer.kind = "sgd";
    EXPECT_EQ(states(), 0);
    plan.optimizer.values.momentum = 0.9;
    EXPECT_EQ(states(), 1);
}

TEST(Estimate, AGroupHasStatesOfItsOwn) {
    Plan plan;
    plan.optimizer.kind = "sgd";
    plan.optimizer.groups.push_back({{"frozen", "w"}, {}});
    plan.optimizer.groups[0].values.momentum = 0.9;
    plan.optimizer.groups.push_back({{"*"}, {}});
    Program program = program_of(2);
    EXPECT_EQ(estimate_ranks(plan, program)[0].optimizer_bytes, 400) << "the first that matches has w";
    EXPECT_EQ(estimate_ranks(plan, program)[0].saved_copy_bytes, 2 * 400 + 40);
    program.mesh.dp = 2;
    plan.mesh.zero1 = true;
    EXPECT_EQ(estimate_ranks(plan, program)[0].optimizer_bytes, 4 * 64) << "shares end at 64 elements";
    std::swap(plan.optimizer.groups[0], plan.optimizer.groups[1]);
    EXPECT_EQ(estimate_ranks(plan, program)[0].optimizer_bytes, 0);
}

TEST(Estimate, ActivationsFollowTheSchedule) {
    // 1F1B holds two microbatches on the first rank and one on the last, however many there are.
    for (int num_microbatches : {2, 4, 8}) {
        const std::vector<RankEstimate> ranks = estimate_ranks(Plan{}, program_of(num_microbatches));
        EXPECT_EQ(ranks[0].activation_bytes, 2 * (32 + 32) + 400 + 32) << "with the model's input, and gradients";
        EXPECT_EQ(ranks[1].activation_bytes, 32 + 4 + 32 + 4) << "with what it receives, and gradients";
    }
}

TEST(Estimate, AForwardHoldsForAMomentWhatPasses) {
    Program program = program_of(4);
    program.training.split.segments[0].passing_bytes = 400 + 32 + 7;
    EXPECT_EQ(estimate_ranks(Plan{}, program)[0].activation_bytes, 2 * 64 + 400 + 32 + 7) << "more than its backward";
    program.training.split.segments[0].recompute = true;
    program.training.split.segments[0].passing_bytes = 1000;
    Plan plan;
    plan.pipeline.recompute.except_last = false;
    EXPECT_EQ(estimate_ranks(plan, program)[0].activation_bytes, 2 * 32 + 32 + 1000) << "its backward has a forward";
}

TEST(Estimate, ABackwardWorksWithGradientsBesideWhatIsKept) {
    Program program = program_of(4);
    program.training.split.segments[0].working_bytes = 1000;
    program.training.split.segments[1].working_bytes = 10;
    const std::vector<RankEstimate> ranks = estimate_ranks(Plan{}, program);
    EXPECT_EQ(ranks[0].activation_bytes, 2 * 64 + 1000) << "of one microbatch at a time";
    EXPECT_EQ(ranks[1].activation_bytes, 36 + 10);
}

TEST(Estimate, ARecordingKeepsAMicrobatchAndWhatItWorksWith) {
    Program program = program_of(4);
    std::vector<SegmentSpec>& segments = program.training.split.segments;
    segments[0].working_bytes = 1000;
    segments[0].waiting_bytes = 70;
    EXPECT_EQ(estimate_ranks(Plan{}, program)[0].recorded_bytes, 2 * (64 + 1000));
    std::vector<Action>& actions = program.training.schedule.actions[0];
    actions.clear();
    const auto add = [&](ActionKind kind, int microbatch) { actions.push_back({kind, 0, microbatch}); };
    add(ActionKind::F, 0);
    add(ActionKind::F, 1);
    add(ActionKind::I, 0);
    add(ActionKind::F, 2);
    add(ActionKind::W, 0);
    EXPECT_EQ(estimate_ranks(Plan{}, program)[0].recorded_bytes, 3 * (70 + 1000)) << "until its W";
    EXPECT_EQ(estimate_ranks(Plan{}, program)[0].activation_bytes, 64 + 96 + 64 + 1000) << "a W with two others";
}

TEST(Estimate, WhatIsRecomputedKeepsItsInputsAndHasOneRecording) {
    Plan plan;
    plan.pipeline.recompute.what = "stage";
    Program program = program_of(4);
    SegmentSpec& segment = program.training.split.segments[0];
    segment.recompute = true;
    segment.working_bytes = 1000;
    EXPECT_EQ(estimate_ranks(plan, program)[0].activation_bytes, 2 * 32 + 32 + 1000);
    EXPECT_EQ(estimate_ranks(plan, program)[0].recorded_bytes, 2 * 32 + 2 * (32 + 32) + 32 + 1000)
        << "what comes, what goes, and their gradients";
    segment.input_bytes += 500;  // made by another segment of the stage
    EXPECT_EQ(estimate_ranks(plan, program)[0].activation_bytes, 2 * 532 + 32 + 1000);
    segment.input_bytes -= 500;
    plan.pipeline.recompute.except_last = true;
    EXPECT_EQ(estimate_ranks(plan, program)[0].recorded_bytes, 2 * 32 + 2 * (32 + 32) + 32 + 1000 + 64 + 1000)
        << "and one of the last microbatch";
    plan.pipeline.recompute.except_last = false;
    segment.waiting_bytes = 70;
    std::vector<Action>& actions = program.training.schedule.actions[0];
    actions.clear();
    for (const ActionKind kind : {ActionKind::F, ActionKind::I, ActionKind::W}) {
        for (const int microbatch : {0, 1}) actions.push_back({kind, 0, microbatch});
    }
    EXPECT_EQ(estimate_ranks(plan, program)[0].recorded_bytes, 2 * 32 + 2 * (70 + 1000) + 2 * (32 + 32) + 32 + 1000)
        << "and one for each between the halves of a backward";
}

TEST(Estimate, TrafficIsForwardFromOneAndBackwardFromTheOther) {
    const std::vector<RankEstimate> ranks = estimate_ranks(Plan{}, program_of(4));
    EXPECT_EQ(ranks[0].sent_bytes, 4 * 32);
    EXPECT_EQ(ranks[1].sent_bytes, 4 * 32);
}

}  // namespace
}  // namespace vpp
