#include "program/inspected_cuts.hpp"

#include <gtest/gtest.h>

#include "unit/graph/graphs.hpp"

namespace vpp {
namespace {

/// A chain whose op i makes `sizes[i]` elements and costs 10 FLOPs.
Graph chain_of(const std::vector<int64_t>& sizes) {
    test::GraphMaker maker;
    int x = maker.input("x");
    for (size_t i = 0; i < sizes.size(); ++i) x = maker.op("m" + std::to_string(i), {x}, 10, sizes[i]);
    return maker.finish();
}

TEST(InspectedCuts, ALighterCutBesideItIsFound) {
    // 41 ops, so that one op more is within 5 % of a half.
    std::vector<int64_t> sizes(41, 100);
    sizes[20] = 10;
    const Graph graph = chain_of(sizes);
    const auto cuts = inspect_cuts(graph, make_stages(graph, {20}), Plan{}, {});
    ASSERT_EQ(cuts.size(), 1U);
    EXPECT_EQ(cuts[0].bytes, 400);
    EXPECT_EQ(cuts[0].better_op, 21);
    EXPECT_EQ(cuts[0].better_bytes, 40);
    EXPECT_EQ(cuts[0].better_after, "m20");
    EXPECT_DOUBLE_EQ(cuts[0].better_largest, 1);
}

TEST(InspectedCuts, OneThatWouldBeUnevenOrIllegalIsNot) {
    std::vector<int64_t> sizes(41, 100);
    sizes[5] = 1;
    Graph graph = chain_of(sizes);
    EXPECT_EQ(inspect_cuts(graph, make_stages(graph, {20}), Plan{}, {})[0].better_op, 20);
    sizes[5] = 100;
    sizes[20] = 1;
    graph = chain_of(sizes);
    graph.cuts[21] = {false, "no"};
    EXPECT_EQ(inspect_cuts(graph, make_stages(graph, {20}), Plan{}, {})[0].better_op, 20);
}

TEST(InspectedCuts, TheTransferIsComparedWithAMeanForward) {
    const Graph graph = chain_of({100, 100});
    ScheduleCosts costs;
    costs.stages = {{30, 60, 30, 30}, {10, 20, 10, 10}};
    costs.transfer = 5;
    EXPECT_DOUBLE_EQ(inspect_cuts(graph, make_stages(graph, {1}), Plan{}, costs)[0].transfer_share, 0.25);
}

}  // namespace
}  // namespace vpp
