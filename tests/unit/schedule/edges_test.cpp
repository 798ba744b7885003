#include "schedule/edges.hpp"

#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

using testing::error_text;

TEST(Routes, AValueAndItsGradientGoOppositeWays) {
    const std::vector<Route> routes = routes_of({{7, 0, 2, true, 1}, {8, 0, 3, false, 0}}, 4, false);
    ASSERT_EQ(routes.size(), 3U);
    EXPECT_FALSE(routes[0].gradient);
    EXPECT_EQ(routes[0].from, 0);
    EXPECT_EQ(routes[0].to, 2);
    EXPECT_EQ(routes[0].send_kind(), ActionKind::SendF);
    EXPECT_TRUE(routes[1].gradient);
    EXPECT_EQ(routes[1].edge, 7);
    EXPECT_EQ(routes[1].from, 2);
    EXPECT_EQ(routes[1].to, 1);
    EXPECT_EQ(routes[1].receive_kind(), ActionKind::RecvB);
    EXPECT_EQ(routes[2].edge, 8);
}

TEST(Routes, ForwardOnlyHasNoGradients) {
    EXPECT_EQ(routes_of(chain_edges(4), 4, true).size(), 3U);
    EXPECT_EQ(routes_of(chain_edges(4), 4, false).size(), 6U);
}

TEST(Routes, EachStageSeesItsOwnEnds) {
    const std::vector<StageRoutes> stages = routes_by_stage(routes_of(chain_edges(3), 3, false), 3);
    ASSERT_EQ(stages.size(), 3U);
    EXPECT_TRUE(stages[0].values_in.empty());
    EXPECT_EQ(stages[0].values_out.at(0).to, 1);
    EXPECT_EQ(stages[0].gradients_in.at(0).from, 1);
    EXPECT_EQ(stages[1].values_in.at(0).from, 0);
    EXPECT_EQ(stages[1].gradients_out.at(0).to, 0);
    EXPECT_TRUE(stages[2].values_out.empty());
}

// A tied parameter: nothing goes forward; W ends the way of its gradient where the backward is split.
TEST(Routes, TiedParametersHaveAGradientOnly) {
    const std::vector<Route> routes = routes_of({{3, 0, 2, true, 0, true}}, 3, false);
    ASSERT_EQ(routes.size(), 1U);
    EXPECT_TRUE(routes[0].gradient);
    EXPECT_EQ(routes[0].from, 2);
    EXPECT_TRUE(routes[0].ends_at(ActionKind::W) && routes[0].ends_at(ActionKind::B));
    EXPECT_FALSE(routes[0].ends_at(ActionKind::I) || routes[0].ends_at(ActionKind::F));
    const std::vector<StageRoutes> stages = routes_by_stage(routes, 3);
    EXPECT_EQ(stages[2].tied_out.size(), 1U);
    EXPECT_EQ(stages[0].tied_in.size(), 1U);
    EXPECT_TRUE(stages[0].gradients_in.empty() && stages[2].gradients_out.empty());
    EXPECT_TRUE(routes_of({{3, 0, 2, true, 0, true}}, 3, true).empty());
}

TEST(Routes, ImpossibleEdgesAreBugs) {
    const auto bug = [](const ScheduleEdge& edge) {
        return error_text(ErrorKind::Bug, [&] { routes_of({{0, 0, 1, true, 0}, edge}, 3, false); });
    };
    EXPECT_CONTAINS(bug({0, 1, 2, true, 1}), "id of its own");
    EXPECT_CONTAINS(bug({-1, 1, 2, true, 1}), "id of its own");
    EXPECT_CONTAINS(bug({1, 2, 2, true, 1}), "to a later one");
    EXPECT_CONTAINS(bug({1, 2, 3, true, 2}), "to a later one");
    EXPECT_CONTAINS(bug({1, -1, 2, true, 0}), "to a later one");
    EXPECT_CONTAINS(bug({1, 1, 2, true, 2}), "earlier user");
    EXPECT_CONTAINS(bug({1, 1, 2, true, 0}), "earlier user");
}

TEST(ChainEdges, OneFewerThanStages) {
    EXPECT_TRUE(chain_edges(1).empty());
    const std::vector<ScheduleEdge> edges = chain_edges(3);
    ASSERT_EQ(edges.size(), 2U);
    EXPECT_EQ(edges[1].id, 1);
    EXPECT_EQ(edges[1].producer, 1);
    EXPECT_EQ(edges[1].consumer, 2);
    EXPECT_EQ(edges[1].gradient_to, 1);
}

}  // namespace
}  // namespace vpp
