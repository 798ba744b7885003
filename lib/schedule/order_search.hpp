#pragma once
// Order search from one schedule: simulated annealing over the orders of the ranks.
#include <cstdint>

#include "schedule/incremental_simulator.hpp"
#include "schedule/order_moves.hpp"

namespace vpp {

struct OrderSearch {
    SearchObjective objective = SearchObjective::Makespan;
    int most_held = 0;  ///< stage activations on a rank
    Ticks bound = 0;    ///< where to stop: nothing is better
    int64_t moves = 0;  ///< to propose
    /// At the start, in 1/256 ticks: how much dearer a move may be, times a random number with mean 1.44.
    int64_t temperature = 0;
};

struct FoundOrder {
    NodeLists lists;
    Ticks cost = 0;
    int64_t moves = 0;  ///< proposed until the end or the bound
};

/// The best order on the way, at worst the given one. The temperature falls to 0 with the square of what is left.
/// Requires: lists as IncrementalSimulator takes them.
FoundOrder search_order(const OrderGraph& graph, const NodeLists& lists, const OrderSearch& search, Draws& draws);

}  // namespace vpp
