// What stages keep of microbatches, against figures worked out by hand.
#include "program/activation_memory.hpp"

#include <gtest/gtest.h>

#include "unit/graph/graphs.hpp"

namespace vpp {
namespace {

constexpr int64_t kBytes = 32;  // of a tensor: eight float32

/// Three ops with weights, each of which keeps its output; stage 1 has the last two.
Graph three_layers() {
    test::GraphMaker maker;
    int value = maker.input("x");
    for (int i = 0; i < 3; ++i) {
        value = maker.op("", {value, maker.parameter("w" + std::to_string(i), 100)});
        maker.last_op().kept_bytes = kBytes;
    }
    return maker.finish();
}

ActivationMemory memory_with(const Graph& graph, Split split, int64_t working, const Plan& plan = {}) {
    for (SegmentSpec& segment : split.segments) segment.working_bytes = working;
    return {plan, graph, split};
}

Schedule schedule_of(int stage, const std::vector<std::pair<ActionKind, int>>& actions) {
    Schedule schedule{"", 1, 4, {0, 0}, {{}}};
    for (const auto& [kind, microbatch] : actions) schedule.actions[0].push_back({kind, stage, microbatch});
    return schedule;
}

/// Of a stage alone: what its actions take at most.
auto peaks_of(const ActivationMemory& memory, int stage) {
    return [&memory, stage](const std::vector<std::pair<ActionKind, int>>& actions) {
        return memory.peak_bytes(schedule_of(stage, actions));
    };
}

TEST(ActivationMemory, AWholeBackwardFreesWhatItsForwardKept) {
    const Graph graph = three_layers();
    const ActivationMemory memory = memory_with(graph, make_stages(graph, {1}), 1000);
    EXPECT_EQ(memory.kept_bytes(0), 2 * kBytes) << "the model's input, and what the op keeps";
    EXPECT_EQ(memory.kept_bytes(1), 3 * kBytes) << "with what comes to it";
    EXPECT_EQ(memory.peak_bytes(schedule_of(1, {{ActionKind::F, 0}, {ActionKind::F, 1}})), 6 * kBytes);
    EXPECT_EQ(memory.peak_bytes(
                  schedule_of(1, {{ActionKind::F, 0}, {ActionKind::B, 0}, {ActionKind::F, 1}, {ActionKind::B, 1}})),
              3 * kBytes + 1000)
        << "one at a time";
}

TEST(ActivationMemory, AnInputHalfHasAllThatWasKeptAndTheGradientsForTheWeights) {
    const Graph graph = three_layers();
    const ActivationMemory memory = memory_with(graph, make_stages(graph, {1}), 1000);
    const auto peak = peaks_of(memory, 1);
    // I: three kept, a gradient for each of the two weights. To W: those, and what the two ops read.
    EXPECT_EQ(peak({{ActionKind::F, 0}, {ActionKind::I, 0}}), (3 + 2) * kBytes + 1000);
    EXPECT_EQ(peak({{ActionKind::F, 0}, {ActionKind::I, 0}, {ActionKind::F, 1}, {ActionKind::I, 1}}),
              (4 + 3 + 2) * kBytes + 1000);
    EXPECT_EQ(peak({{ActionKind::F, 0},
                    {ActionKind::I, 0},
                    {ActionKind::W, 0},
                    {ActionKind::F, 1},
                    {ActionKind::I, 1},
                    {ActionKind::W, 1}}),
              (3 + 2) * kBytes + 1000)
        << "W frees it";
}

TEST(ActivationMemory, WhereNoInputWantsAGradientAllWaitsForW) {
    const Graph graph = three_layers();
    const ActivationMemory memory = memory_with(graph, make_stages(graph, {1}), 1000);
    const auto peak = peaks_of(memory, 0);
    EXPECT_EQ(peak({{ActionKind::F, 0}, {ActionKind::I, 0}}), 3 * kBytes) << "with the gradient that came";
    EXPECT_EQ(peak({{ActionKind::F, 0}, {ActionKind::I, 0}, {ActionKind::W, 0}}), 3 * kBytes + 1000);
}

TEST(ActivationMemory, WhatLiesBesideTheInputPathWaitsToo) {
    // Stage 1 adds to what comes an embedding of the model's input that went through an op without weights.
    test::GraphMaker maker;
    const int x = maker.input("x");
    const int a = maker.op("", {x, maker.parameter("w", 100)});
    const int table = maker.op("", {x, maker.parameter("t", 100)});
    const int beside = maker.op("", {table});
    maker.last_op().kept_bytes = 500;
    maker.op("", {a, beside});
    maker.last_op().kept_bytes = 70;
    const Graph graph = maker.finish();
    const ActivationMemory memory = memory_with(graph, make_stages(graph, {1}), 0);
    const auto peak = peaks_of(memory, 1);
    const int64_t kept = memory.kept_bytes(1), read_by_weights = 2 * kBytes;  // the table's input, its gradient
    EXPECT_EQ(kept, 2 * kBytes + 500 + 70);
    EXPECT_EQ(peak({{ActionKind::F, 0}, {ActionKind::I, 0}}), kept + kBytes) << "what leaves the path is captured";
    EXPECT_EQ(peak({{ActionKind::F, 0}, {ActionKind::I, 0}, {ActionKind::F, 1}}),
              read_by_weights + 500 + (kBytes + 70) + kept);
}

TEST(ActivationMemory, RecomputedStagesKeepTheirInputsUpToTheBackward) {
    const Graph graph = three_layers();
    Plan plan;
    const Split split = make_stages(graph, {1}, {{1, 3}});
    EXPECT_EQ(memory_with(graph, split, 1000, plan).kept_bytes(1), kBytes);
    const auto peak = [&](const std::vector<std::pair<ActionKind, int>>& actions) {
        return memory_with(graph, split, 1000, plan).peak_bytes(schedule_of(1, actions));
    };
    EXPECT_EQ(peak({{ActionKind::F, 0}, {ActionKind::F, 1}, {ActionKind::B, 0}}), (2 + 2) * kBytes + 1000);
    EXPECT_EQ(peak({{ActionKind::F, 0}, {ActionKind::F, 3}}), (1 + 3) * kBytes);
    plan.pipeline.recompute.except_last = true;
    EXPECT_EQ(peak({{ActionKind::F, 0}, {ActionKind::F, 3}}), (1 + 3) * kBytes) << "the last microbatch";
    EXPECT_EQ(memory_with(graph, split, 1000, plan).kept_bytes(1), 3 * kBytes) << "of any microbatch, at most";
    EXPECT_EQ(peak({{ActionKind::F, 0}, {ActionKind::F, 3}, {ActionKind::F, 1}}), (1 + 3 + 3) * kBytes);
}

TEST(ActivationMemory, MostIsOfAnyStage) {
    const Graph graph = three_layers();
    const ActivationMemory memory = memory_with(graph, make_stages(graph, {1}), 1000);
    EXPECT_EQ(memory.most_kept_bytes(/*with_halves=*/false), 3 * kBytes);
    EXPECT_EQ(memory.most_kept_bytes(/*with_halves=*/true), 4 * kBytes);
    EXPECT_EQ(memory.most_working_bytes(/*with_halves=*/false), 1000);
    EXPECT_EQ(memory.most_working_bytes(/*with_halves=*/true), 2 * kBytes + 1000);
}

}  // namespace
}  // namespace vpp
