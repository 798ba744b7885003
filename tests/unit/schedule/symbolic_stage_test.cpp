#include "schedule/symbolic_stage.hpp"

#include <gtest/gtest.h>

#include "schedule/symbolic.hpp"

namespace vpp {
namespace {

using enum ActionKind;

/// Stage 0: op 0 reads data with parameter 0. Stage 1: op 1 uses value 0 twice, op 2 uses values 1 and 0.
SymbolicModel make_model() {
    SymbolicModel model;
    model.ops = {{{}, 0}, {{0, 0}, 1}, {{1, 0}, 2}};
    model.first_op = {0, 1};
    return finish(model);
}

struct Bench {
    explicit Bench(SymbolicModel m, int num_microbatches = 2) : model(std::move(m)) {
        step.values.assign(model.ops.size(), std::vector<Tree>(static_cast<size_t>(num_microbatches), kMissing));
        step.num_runs.assign(model.ops.size(), std::vector<int>(static_cast<size_t>(num_microbatches), 0));
        step.gradients.assign(model.owner.size(), kUndefined);
        step.buffers.assign(model.ops.size(), kUndefined);
        for (int stage = 0; stage < model.num_stages(); ++stage) {
            stages.emplace_back(pool, model, stage, num_microbatches, step);
        }
    }
    Bench(const Bench&) = delete;

    TreePool pool;
    SymbolicModel model;
    SymbolicStep step;
    std::vector<SymbolicStage> stages;
};

TEST(SymbolicStage, UsesOfAValueAddUpLastFirst) {
    Bench bench(make_model());
    SymbolicStage& stage = bench.stages[1];
    const SymbolicEdge& edge = bench.model.edges[0];
    stage.put(edge, false, 0, bench.pool.make({TreeKind::Data, 0, 0, 0, 0}));
    stage.compute(F, 0);
    EXPECT_EQ(stage.get(edge, true, 0), kMissing);
    stage.compute(B, 0);
    // Op 2's second input, then op 1's first and second.
    EXPECT_EQ(bench.pool.text(stage.get(edge, true, 0), 1), "((dv2[0] + dv1[0]) + dv1[0])");
    EXPECT_EQ(bench.pool.text(bench.step.gradients[1], 1), "dw1[0](dv2[0], data[0], data[0], w1)");
}

// The arrived gradient comes first, then the stage's own uses.
TEST(SymbolicStage, WhatArrivedStandsFirst) {
    SymbolicModel model;
    model.ops = {{{}, 0}, {{0}, 1}, {{1, 0}, 2}};
    model.first_op = {0, 1, 2};
    Bench bench(finish(model));
    ASSERT_EQ(bench.model.edges[1].edge.gradient_to, 1);
    SymbolicStage& stage = bench.stages[1];
    stage.put(bench.model.edges[0], false, 0, bench.pool.make({TreeKind::Data, 0, 0, 0, 0}));
    stage.compute(F, 0);
    stage.put(bench.model.edges[1], true, 0, bench.pool.make({TreeKind::Seed, 5, 0, 0, 0}));
    stage.put(bench.model.edges[2], true, 0, bench.pool.make({TreeKind::Seed, 6, 0, 0, 0}));
    stage.compute(I, 0);
    EXPECT_EQ(bench.pool.text(stage.get(bench.model.edges[0], true, 0), 1), "(loss[5] + dv1[0..6])");
}

TEST(SymbolicStage, EarlyResultsAreParkedAndLateOnesAdded) {
    SymbolicModel model;
    model.ops = {{{}, 0}};
    model.first_op = {0};
    Bench bench(finish(model), 3);
    SymbolicStage& stage = bench.stages[0];
    for (int i : {0, 1, 2}) stage.compute(F, i);
    stage.compute(B, 2);
    stage.compute(B, 1);
    EXPECT_EQ(bench.step.gradients[0], kUndefined);
    stage.compute(B, 0);
    EXPECT_EQ(bench.pool.text(bench.step.gradients[0], 1), "((dw0[0] + dw0[1]) + dw0[2])");
}

TEST(SymbolicStage, WhatWasNotThereIsMissing) {
    Bench bench(make_model());
    SymbolicStage& stage = bench.stages[1];
    stage.compute(F, 0);
    EXPECT_EQ(bench.pool.text(bench.step.values[1][0], 3), "v1(missing, missing, w1)");
    stage.compute(W, 0);  // before I
    EXPECT_EQ(bench.pool.text(bench.step.gradients[2], 3), "dw2(missing, missing)");
    Bench backward(make_model());
    backward.stages[1].compute(B, 1);  // before F
    EXPECT_EQ(backward.stages[1].get(backward.model.edges[0], false, 1), kMissing);
    EXPECT_EQ(backward.pool.text(backward.stages[1].get(backward.model.edges[0], true, 1), 1),
              "((dv2[1] + dv1[1]) + dv1[1])");
}

/// One stage: op 0 reads data, 1 and 2 (random, with a buffer) are recomputed together, 3 uses 1 and 2.
SymbolicModel make_segmented(bool recomputes) {
    SymbolicModel model;
    model.ops = {{{}, 0}, {{0}, 1}, {{1}, 2, true, true, true}, {{2, 1}, 3}};
    model.first_op = {0};
    if (recomputes) model.segments = {{1, 3}};
    return finish(model);
}

// A segment drops its values at F and makes the same ones again, with the same keys; buffers stay.
TEST(SymbolicStage, RecomputeMakesTheSameTrees) {
    Bench one(make_segmented(false)), other(make_segmented(true));
    for (Bench* bench : {&one, &other}) {
        for (ActionKind kind : {F, I, W}) bench->stages[0].compute(kind, 0);
    }
    EXPECT_EQ(one.step.gradients, other.step.gradients);
    EXPECT_EQ(one.step.buffers, other.step.buffers);
    EXPECT_EQ(other.pool.text(other.step.buffers[2], 1), "buffer2[0](undefined, v2[0])");
    EXPECT_EQ(other.pool.text(other.step.values[2][0], 1), "v2[0](v1[0], w2, key2[0])");
    const auto runs = [](const Bench& bench) {
        std::vector<int> counts;
        for (const std::vector<int>& by_microbatch : bench.step.num_runs) counts.push_back(by_microbatch[0]);
        return counts;
    };
    EXPECT_EQ(runs(one), (std::vector<int>{1, 1, 1, 1}));
    EXPECT_EQ(runs(other), (std::vector<int>{1, 2, 2, 1}));
}

TEST(SymbolicStage, ARecomputeComesWithItsGradients) {
    Bench bench(make_segmented(true), 2);
    SymbolicStage& stage = bench.stages[0];
    for (int i : {0, 1}) stage.compute(F, i);
    EXPECT_EQ(bench.step.num_runs[1], (std::vector<int>{1, 1}));
    stage.compute(I, 0);
    EXPECT_EQ(bench.step.num_runs[1], (std::vector<int>{2, 1}));
    stage.compute(B, 1);
    EXPECT_EQ(bench.step.num_runs[1], (std::vector<int>{2, 2}));
    stage.compute(W, 0);
    EXPECT_EQ(bench.step.num_runs[1], (std::vector<int>{2, 2}));
}

}  // namespace
}  // namespace vpp
