#include "schedule/incremental_simulator.hpp"

#include <set>

#include "schedule/generators.hpp"
#include "schedule/order_moves.hpp"
#include "schedule/search_seeds.hpp"
#include "unit/schedule/every_order.hpp"

namespace vpp {
namespace {

using testing::random_costs;

struct Start {
    const char* name;
    int P, v, M;
};
constexpr Start kStarts[] = {{"1F1B", 3, 1, 5},
                             {"INTERLEAVED_1F1B", 3, 2, 5},
                             {"ZERO_BUBBLE_GREEDY", 4, 1, 8},
                             {"V_HALF", 3, 2, 4},
                             {"GPIPE", 2, 1, 4}};

Schedule rotated(Schedule schedule, const OrderMove& move) {
    std::vector<Action>& list = schedule.actions[static_cast<size_t>(move.rank)];
    std::rotate(list.begin() + move.begin, list.begin() + move.middle, list.begin() + move.end);
    return schedule;
}

/// Messages take 6 ticks, of which they keep the next one of their channel for 5, or for 2 between the first stages.
void make_channels_slow(ScheduleCosts& costs) {
    costs.transfer = 6;
    costs.occupied = 5;
    costs.occupied_of[0] = 2;
}

Ticks objective_of(const Simulation& simulation, SearchObjective objective) {
    return objective == SearchObjective::Makespan ? simulation.makespan : simulation.span;
}

TEST(IncrementalSimulator, StartsWithTheTimesOfTheSimulator) {
    for (const Start& start : kStarts) {
        ScheduleCosts costs = random_costs(start.P * start.v, 3);
        if (start.M % 2 == 0) make_channels_slow(costs);
        const Schedule schedule = make_schedule(start.name, start.P, start.v, start.M);
        const OrderGraph graph = make_order_graph(schedule, costs);
        const Simulation simulation = testing::prove(schedule, costs).simulation;
        for (SearchObjective objective : {SearchObjective::Makespan, SearchObjective::Span}) {
            const IncrementalSimulator simulator(graph, nodes_of(graph, schedule), objective, 100);
            EXPECT_EQ(simulator.cost(), objective_of(simulation, objective)) << start.name;
        }
    }
}

// Whatever is kept is a schedule that the checker proves, with the costs of the full simulator; whatever is said to
// deadlock, and each F moved past its turn or its backward, is refused by the checker too. A move that costs too much
// costs what the simulator says, and leaves no trace.
void expect_agreement(bool slow_channels) {
    std::set<MoveVerdict> seen;
    for (const Start& start : kStarts) {
        for (SearchObjective objective : {SearchObjective::Makespan, SearchObjective::Span}) {
            ScheduleCosts costs = random_costs(start.P * start.v, 17);
            if (slow_channels) make_channels_slow(costs);
            Schedule schedule = split_all(make_schedule(start.name, start.P, start.v, start.M));
            const std::vector<ScheduleEdge> edges = chain_edges(schedule.num_stages());
            const OrderGraph graph = make_order_graph(schedule, costs);
            const int most_held = start.M * start.v - 1 + (std::string(start.name) == "GPIPE" ? 1 : 0);
            IncrementalSimulator simulator(graph, nodes_of(graph, schedule), objective, most_held);
            Draws draws(99);
            for (int round = 0; round < 400; ++round) {
                const OrderMove move = propose_move(simulator.lists(), draws);
                const Schedule changed = rotated(schedule, move);
                const Ticks most_cost = simulator.cost() + draws.below(6) - 1;
                const MoveVerdict verdict = simulator.try_move(move, most_cost);
                seen.insert(verdict);
                if (verdict == MoveVerdict::Deadlocks) {
                    const std::string text = testing::error_text(ErrorKind::Plan, [&] { testing::prove(changed); });
                    EXPECT_FALSE(text.empty());
                } else if (verdict == MoveVerdict::OverMemory) {
                    const std::vector<int> peaks = peak_in_flight(changed);
                    EXPECT_GT(*std::max_element(peaks.begin(), peaks.end()), most_held);
                } else if (verdict != MoveVerdict::BreaksOrder) {
                    const Ticks cost = objective_of(testing::prove(changed, costs).simulation, objective);
                    if (verdict == MoveVerdict::Kept) schedule = changed;
                    EXPECT_EQ(verdict == MoveVerdict::Kept, cost <= most_cost);
                    if (verdict == MoveVerdict::Kept) {
                        EXPECT_EQ(simulator.cost(), cost);
                    }
                }
                EXPECT_EQ(schedule_of(graph, simulator.lists()).actions, schedule.actions);
                if (::testing::Test::HasFailure()) return;
            }
            const auto proved = testing::prove(schedule, costs);
            EXPECT_EQ(simulator.cost(), objective_of(proved.simulation, objective));
        }
    }
    EXPECT_EQ(seen.size(), 5U);  // every verdict was met
}

TEST(IncrementalSimulator, AgreesWithCheckerAndSimulatorMoveByMove) {
    expect_agreement(false);
}

TEST(IncrementalSimulator, AgreesWhereMessagesWaitForTheirChannel) {
    expect_agreement(true);
}

// A move that the simulator refuses for its order is one that the checker refuses, or one that turns the order of
// backwards or W of a stage round, which the checker leaves to the engine and a search does not do.
TEST(IncrementalSimulator, BrokenOrdersAreRefusedAsByTheChecker) {
    const Schedule schedule = make_schedule("ZERO_BUBBLE_GREEDY", 3, 1, 6);
    const OrderGraph graph = make_order_graph(schedule, {});
    IncrementalSimulator simulator(graph, nodes_of(graph, schedule), SearchObjective::Makespan, 3);
    int num_refused = 0;
    for (int rank = 0; rank < 3; ++rank) {
        const std::vector<Action>& list = schedule.actions[static_cast<size_t>(rank)];
        for (int i = 0; i + 1 < static_cast<int>(list.size()); ++i) {
            const Action &first = list[static_cast<size_t>(i)], &second = list[static_cast<size_t>(i + 1)];
            const OrderMove move{rank, i, i + 1, i + 2};
            const bool broken = first.kind == second.kind || first.microbatch == second.microbatch;
            const bool said = simulator.try_move(move, -1) == MoveVerdict::BreaksOrder;
            EXPECT_EQ(said, broken);
            const bool by_checker = broken && (first.kind == ActionKind::F || first.kind != second.kind);
            if (!by_checker) continue;
            ++num_refused;
            EXPECT_FALSE(
                testing::error_text(ErrorKind::Plan, [&] { testing::prove(rotated(schedule, move)); }).empty());
        }
    }
    EXPECT_GT(num_refused, 10);
}

TEST(IncrementalSimulator, BrokenSeedsAreBugs) {
    const Schedule schedule = make_schedule("1F1B", 2, 1, 3);
    const OrderGraph graph = make_order_graph(schedule, {});
    NodeLists lists = nodes_of(graph, schedule);
    EXPECT_CONTAINS(
        testing::error_text(ErrorKind::Bug, [&] { IncrementalSimulator(graph, lists, SearchObjective::Makespan, 1); }),
        "within the memory limit");
    std::swap(lists[1][0], lists[1][1]);  // B before its F: rank 0 never gets its gradient... it is found as a circle
    std::reverse(lists[0].begin(), lists[0].end());
    EXPECT_CONTAINS(
        testing::error_text(ErrorKind::Bug, [&] { IncrementalSimulator(graph, lists, SearchObjective::Makespan, 9); }),
        "no deadlock");
}

}  // namespace
}  // namespace vpp
