// Costs of ops and stages against figures worked out by hand.
#include "program/cost_model.hpp"

#include <gtest/gtest.h>

#include "unit/graph/graphs.hpp"

namespace vpp {
namespace {

void expect_costs(const StageCosts& costs, Ticks forward, Ticks input_gradient, Ticks weight_gradient) {
    EXPECT_EQ(costs.forward, forward);
    EXPECT_EQ(costs.input_gradient, input_gradient);
    EXPECT_EQ(costs.weight_gradient, weight_gradient);
    EXPECT_EQ(costs.backward, input_gradient + weight_gradient);
}

/// Two ops with weights, then one that takes what both made.
Graph three_ops() {
    test::GraphMaker maker;
    const int x = maker.input("x"), w = maker.parameter("w", 4), other = maker.parameter("o", 4);
    const int a = maker.op("m0", {x, w}, 100);
    const int b = maker.op("m1", {a, other}, 100);
    maker.op("m2", {b, a}, 50);
    return maker.finish();
}

TEST(CostModel, GradientsCostTheForwardOnceForEachInputThatGetsOne) {
    const Graph graph = three_ops();
    const ScheduleCosts costs = costs_of_stages(estimate_costs(graph, 2), graph, {1, 2}, 2);
    EXPECT_EQ(costs.ticks_per_unit, 10'000);
    ASSERT_EQ(costs.stages.size(), 3U);
    // A mean rank has 125 FLOPs.
    expect_costs(costs.stages[0], 8'000, 0, 8'000);
    expect_costs(costs.stages[1], 8'000, 8'000, 8'000);
    expect_costs(costs.stages[2], 4'000, 8'000, 0);
    // 8 elements live across the first cut, 16 across the second.
    EXPECT_EQ(costs.transfer_of.at(0), 8 * 4 * 10 * 10'000 / 125);
    EXPECT_EQ(costs.transfer_of.at(1), 16 * 4 * 10 * 10'000 / 125);
}

TEST(CostModel, RecomputeCostsTheForwardOnceMore) {
    const Graph graph = three_ops();
    CostModel model = estimate_costs(graph, 2);
    add_recompute(model, {1, 3});
    const ScheduleCosts costs = costs_of_stages(model, graph, {1, 2}, 2);
    expect_costs(costs.stages[0], 8'000, 0, 8'000);
    expect_costs(costs.stages[1], 8'000, 16'000, 8'000);
    expect_costs(costs.stages[2], 4'000, 12'000, 0);
    Plan plan;
    plan.mesh.pp = 2;
    plan.pipeline.recompute.what = "stage";
    EXPECT_EQ(find_costs(plan, graph).ops[1].input_gradient, model.ops[1].input_gradient);
    plan.pipeline.recompute.what = "none";
    EXPECT_LT(find_costs(plan, graph).ops[1].input_gradient, model.ops[1].input_gradient);
}

TEST(CostModel, TransfersOfASplitGoByEdge) {
    const Graph graph = three_ops();
    const Split split = make_stages(graph, {1, 2});
    const ScheduleCosts costs = costs_of_split(estimate_costs(graph, 2), split, 2);
    ASSERT_EQ(costs.transfer_of.size(), split.edges.size());
    for (const Edge& edge : split.edges) EXPECT_EQ(costs.transfer_of.at(edge.id), 8 * 4 * 10 * 10'000 / 125);
}

TEST(CostModel, WhatIsMadeOfWeightsIsAWeight) {
    test::GraphMaker maker;
    const int x = maker.input("x"), w = maker.parameter("w", 4), frozen = maker.parameter("f", 4, false);
    const int turned = maker.op("m", {w}, 0);
    const int a = maker.op("m", {x, turned}, 50);
    maker.op("m", {a, frozen}, 50);
    const Graph graph = maker.finish();
    const CostModel model = estimate_costs(graph, 1);
    EXPECT_EQ(model.ops[1].input_gradient, 0);
    EXPECT_EQ(model.ops[1].weight_gradient, 0.5);
    EXPECT_EQ(model.ops[2].input_gradient, 0.5);
    EXPECT_EQ(model.ops[2].weight_gradient, 0) << "frozen";
}

TEST(CostModel, AModelWithoutFlopsCountsItsOps) {
    const Graph graph = test::chain({0, 0, 0, 0});
    const ScheduleCosts costs = costs_of_stages(estimate_costs(graph, 2), graph, {1}, 2);
    EXPECT_EQ(costs.stages[0].forward, 5'000);
    EXPECT_EQ(costs.stages[1].forward, 15'000);
    EXPECT_EQ(costs.transfer_of.at(0), 0);
}

TEST(CostModel, TheUnitIsTheSameForEverySplit) {
    const Graph graph = test::chain({3, 1, 4, 1, 5, 9, 2, 6});
    const CostModel model = estimate_costs(graph, 2);
    const ScheduleCosts two = costs_of_stages(model, graph, {5}, 2), four = costs_of_stages(model, graph, {2, 5, 6}, 2);
    EXPECT_EQ(two.ticks_per_unit, four.ticks_per_unit);
    EXPECT_EQ(two.stages[0].forward, four.stages[0].forward + four.stages[1].forward);
    EXPECT_EQ(two.stages[1].backward, four.stages[2].backward + four.stages[3].backward);
}

TEST(CostModel, UnitsOfAnySizeGiveWholeTicks) {
    const Graph graph = test::chain({1, 1});
    for (const double scale : {1e-6, 0.25, 1e8}) {
        CostModel model = estimate_costs(graph, 2);
        for (OpCosts& op : model.ops) op = {op.forward * scale, op.backward * scale, 0, op.backward * scale};
        const ScheduleCosts costs = costs_of_stages(model, graph, {1}, 2);
        EXPECT_GE(costs.stages[0].forward, 10'000) << scale;
        EXPECT_NEAR(costs.units(costs.stages[0].forward), scale, scale * 1e-4);
    }
}

}  // namespace
}  // namespace vpp
