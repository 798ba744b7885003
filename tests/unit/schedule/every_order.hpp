#pragma once
// Every order that a small problem allows, one by one: what a search and a lower bound are held against.
#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "schedule/order_graph.hpp"
#include "schedule/placement.hpp"
#include "schedule/replay.hpp"
#include "unit/schedule/support.hpp"

namespace vpp::testing {

/// All orders of one stage's F, I and W (or F and B): ascending, I after F, W after I, within `most_held` activations.
inline std::vector<std::vector<Action>> stage_orders(int stage, int num_microbatches, int most_held, bool split) {
    std::vector<std::vector<Action>> orders;
    std::vector<Action> list;
    const std::function<void(int, int, int)> extend = [&](int forwards, int gradients, int weights) {
        const int done = split ? weights : gradients;
        if (done == num_microbatches) orders.push_back(list);
        const auto with = [&](ActionKind kind, int microbatch, int f, int g, int w) {
            list.push_back({kind, stage, microbatch});
            extend(f, g, w);
            list.pop_back();
        };
        if (forwards < num_microbatches && forwards - done < most_held) {
            with(ActionKind::F, forwards, forwards + 1, gradients, weights);
        }
        if (gradients < forwards) {
            with(split ? ActionKind::I : ActionKind::B, gradients, forwards, gradients + 1, weights);
        }
        if (split && weights < gradients) with(ActionKind::W, weights, forwards, gradients, weights + 1);
    };
    extend(0, 0, 0);
    return orders;
}

/// The least makespan and span over all orders with one stage on each rank.
struct Least {
    Ticks makespan = std::numeric_limits<Ticks>::max();
    Ticks span = std::numeric_limits<Ticks>::max();
};

inline Least least_of_every_order(int num_ranks, int num_microbatches, const ScheduleCosts& costs, int most_held,
                                  bool split) {
    Schedule schedule{
        "X", num_ranks, num_microbatches, place_stages(Placement::Loop, {num_ranks, 1, num_microbatches}), {}};
    const std::vector<ScheduleEdge> edges = chain_edges(num_ranks);
    Least least;
    const std::function<void(int)> choose = [&](int rank) {
        if (rank < num_ranks) {
            for (const std::vector<Action>& order : stage_orders(rank, num_microbatches, most_held, split)) {
                schedule.actions.push_back(order);
                choose(rank + 1);
                schedule.actions.pop_back();
            }
            return;
        }
        const Schedule lowered = lower(schedule, edges);
        const std::vector<size_t> done = replay(lowered, [](int, size_t) {});
        for (size_t r = 0; r < done.size(); ++r) {
            if (done[r] < lowered.actions[r].size()) return;  // a deadlock
        }
        const Simulation simulation = simulate(lowered, costs);
        least = {std::min(least.makespan, simulation.makespan), std::min(least.span, simulation.span)};
    };
    choose(0);
    return least;
}

/// Costs of 1 to 9 ticks and transfers of 0 to 3; a pure function of `seed`.
inline ScheduleCosts random_costs(int num_stages, uint64_t seed) {
    uint64_t key = mix64(seed);
    const auto draw = [&](int bound) { return static_cast<Ticks>((key = mix64(key)) % static_cast<uint64_t>(bound)); };
    ScheduleCosts costs;
    for (int s = 0; s < num_stages; ++s) {
        const Ticks input = 1 + draw(9), weight = 1 + draw(9);
        costs.stages.push_back({1 + draw(9), input + weight, input, weight});
    }
    costs.transfer = draw(4);
    return costs;
}

}  // namespace vpp::testing
