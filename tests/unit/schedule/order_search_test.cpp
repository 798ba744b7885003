#include "schedule/order_search.hpp"

#include "schedule/generators.hpp"
#include "schedule/lower_bounds.hpp"
#include "unit/schedule/every_order.hpp"

namespace vpp {
namespace {

using testing::random_costs;

FoundOrder search_from(const Schedule& schedule, const ScheduleCosts& costs, const OrderSearch& search, uint64_t seed) {
    const OrderGraph graph = make_order_graph(schedule, costs);
    Draws draws(seed);
    return search_order(graph, nodes_of(graph, schedule), search, draws);
}

// Against every order there is: the search finds the best of them, starting from a poor one.
TEST(OrderSearch, FindsTheBestOfAllOrders) {
    for (uint64_t seed = 0; seed < 6; ++seed) {
        const int P = seed < 3 ? 2 : 3, M = seed < 3 ? 3 : 2;
        const ScheduleCosts costs = random_costs(P, seed);
        const Schedule poor = make_schedule("ZERO_BUBBLE_GREEDY", {.size = {P, 1, M}, .memory_limit = 1});
        const testing::Least least = testing::least_of_every_order(P, M, costs, 2, true);
        for (SearchObjective objective : {SearchObjective::Makespan, SearchObjective::Span}) {
            const FoundOrder found = search_from(poor, costs, {objective, 2, 0, 20000, 5 * 256}, seed);
            EXPECT_EQ(found.cost, objective == SearchObjective::Makespan ? least.makespan : least.span) << seed;
        }
    }
}

TEST(OrderSearch, ResultIsProvedWithinMemoryAndNeverWorse) {
    for (uint64_t seed = 0; seed < 10; ++seed) {
        const ScheduleCosts costs = random_costs(8, seed);
        const Schedule start = make_schedule("INTERLEAVED_1F1B", 4, 2, 6);
        const auto before = testing::prove(start, costs);
        const int most_held = *std::max_element(before.facts.peak_in_flight.begin(), before.facts.peak_in_flight.end());
        const FoundOrder found = search_from(start, costs, {SearchObjective::Makespan, most_held, 0, 3000, 256}, seed);
        const OrderGraph graph = make_order_graph(start, costs);
        const auto after = testing::prove(schedule_of(graph, found.lists), costs);
        EXPECT_EQ(after.simulation.makespan, found.cost);
        EXPECT_LE(found.cost, before.simulation.makespan);
        EXPECT_LE(*std::max_element(after.facts.peak_in_flight.begin(), after.facts.peak_in_flight.end()), most_held);
        EXPECT_EQ(found.moves, 3000);
    }
}

TEST(OrderSearch, StopsAtTheBoundAndAfterItsMoves) {
    const Schedule start = make_schedule("1F1B", 3, 1, 6);
    const OrderSearch search{SearchObjective::Makespan, 3, 0, 500, 256};
    const FoundOrder first = search_from(start, {}, search, 1);
    EXPECT_EQ(first.moves, 500);
    EXPECT_EQ(first.lists, search_from(start, {}, search, 1).lists);
    OrderSearch met = search;
    met.bound = first.cost;
    EXPECT_LE(search_from(start, {}, met, 1).moves, 500);
    met.bound = 3 * 6 + 3 * 2;  // 1F1B's own makespan
    EXPECT_EQ(search_from(start, {}, met, 1).moves, 0);
    const Schedule single{"X", 1, 1, {0}, {{{ActionKind::F, 0, 0}}}};
    EXPECT_EQ(search_from(single, {}, search, 1).moves, 0);  // nothing to move
}

}  // namespace
}  // namespace vpp
