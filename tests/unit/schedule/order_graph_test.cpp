#include "schedule/order_graph.hpp"

#include "schedule/generators.hpp"
#include "unit/schedule/every_order.hpp"

namespace vpp {
namespace {

TEST(OrderGraph, NodesAndBackAreTheSameLists) {
    for (const auto& [name, v] : {std::pair{"1F1B", 1}, {"INTERLEAVED_1F1B", 3}, {"ZERO_BUBBLE_GREEDY", 1}}) {
        const Schedule schedule = make_schedule(name, 4, v, 6);
        const OrderGraph graph = make_order_graph(schedule, {});
        const Schedule back = schedule_of(graph, nodes_of(graph, schedule));
        EXPECT_EQ(back.actions, schedule.actions);
        EXPECT_EQ(back.rank_of_stage, schedule.rank_of_stage);
        EXPECT_EQ(back.num_microbatches, 6);
        EXPECT_EQ(back.name, "AUTO");
    }
}

// v placement, P = 2, v = 2: stages 1 and 2 are on one rank, where the hand-over costs nothing.
TEST(OrderGraph, DependenciesCostsAndTailsByHand) {
    using enum ActionKind;
    Schedule schedule{"X", 2, 1, place_stages(Placement::V, {2, 2, 1}), {}};
    schedule.actions = {{{F, 0, 0}, {F, 3, 0}, {B, 3, 0}, {B, 0, 0}},
                        {{F, 1, 0}, {F, 2, 0}, {I, 2, 0}, {W, 2, 0}, {B, 1, 0}}};
    ScheduleCosts costs;
    costs.stages = {{1, 2, 0, 0}, {3, 4, 0, 0}, {5, 100, 6, 7}, {8, 9, 0, 0}};
    costs.transfer = 10;
    const OrderGraph graph = make_order_graph(schedule, costs);
    // node 3 s is F, 3 s + 1 is B or I, 3 s + 2 is W
    EXPECT_EQ(graph.before[3], 0);
    EXPECT_EQ(graph.behind[0], 3);
    EXPECT_EQ(graph.before[1], 4);
    EXPECT_EQ(graph.before[10], OrderGraph::kNone);  // the last stage turns by itself
    EXPECT_EQ(graph.behind[9], OrderGraph::kNone);
    EXPECT_EQ(graph.lag[3], 10);
    EXPECT_EQ(graph.lag[6], 0);
    EXPECT_EQ(graph.lag[4], 0);
    EXPECT_EQ(graph.cost[7], 6);
    EXPECT_EQ(graph.cost[8], 7);
    EXPECT_EQ(graph.cost[1], 2);
    EXPECT_EQ(graph.tail[1], 0);
    EXPECT_EQ(graph.tail[4], 10 + 2);
    EXPECT_EQ(graph.tail[7], 4 + 10 + 2);  // longer than its W
    EXPECT_EQ(graph.tail[10], 10 + 6 + 4 + 10 + 2);
    EXPECT_EQ(graph.tail[9], 9 + 32);
    EXPECT_EQ(graph.tail[6], 10 + 8 + 9 + 32);
    EXPECT_EQ(graph.held_more[0], 1);
    EXPECT_EQ(graph.held_more[1], -1);  // B
    EXPECT_EQ(graph.held_more[7], 0);   // I
    EXPECT_EQ(graph.held_more[8], -1);  // W
    EXPECT_EQ(graph.action(7), (Action{I, 2, 0}));
    EXPECT_EQ(graph.rank(7), 1);
}

TEST(OrderGraph, TransfersHaveNoNode) {
    const Schedule lowered = lower(make_schedule("1F1B", 2, 1, 2), chain_edges(2));
    EXPECT_CONTAINS(testing::error_text(ErrorKind::Bug, [&] { make_order_graph(lowered, {}); }), "computing actions");
}

}  // namespace
}  // namespace vpp
