#pragma once
// What order search works on: the computing actions of a schedule as numbered nodes, with what never changes while the
// order does: costs, dependencies between stages, memory. Models without skips: stage s hands on to s+1 alone.
#include <vector>

#include "schedule/costs.hpp"
#include "schedule/schedule.hpp"

namespace vpp {

/// What a search makes small.
enum class SearchObjective { Makespan, Span };

/// Nodes by rank, in order.
using NodeLists = std::vector<std::vector<int>>;

/// Node 3 (stage M + microbatch) + part: part 0 is F, 1 is B or I, 2 is W (unused beside a B). All vectors go by node.
struct OrderGraph {
    static constexpr int kNone = -1;

    int num_ranks = 1;
    int num_microbatches = 1;
    std::vector<int> rank_of_stage;
    std::vector<ActionKind> kind;
    std::vector<Ticks> cost;
    std::vector<int> before;      ///< the node of the neighbouring stage that it waits for, or kNone
    std::vector<int> behind;      ///< the one that waits for it
    std::vector<Ticks> lag;       ///< from the end of `before`: the transfer, 0 on one rank
    bool has_channels = false;    ///< whether messages of a channel wait for each other
    std::vector<int> sends_to;    ///< the rank of `behind` if it is another one, or kNone
    std::vector<Ticks> occupied;  ///< how long that message occupies its channel
    std::vector<Ticks> tail;      ///< what at least follows its end: the rest of its microbatch's way
    std::vector<int> held_more;   ///< stage activations: 1 for F, -1 for B and W, 0 for I

    int stage(int node) const { return node / 3 / num_microbatches; }
    int microbatch(int node) const { return node / 3 % num_microbatches; }
    int rank(int node) const { return rank_of_stage[static_cast<size_t>(stage(node))]; }
    Action action(int node) const { return {kind[static_cast<size_t>(node)], stage(node), microbatch(node)}; }
};

/// Requires: a schedule of computing actions that check_schedule would prove; pairs (OVERLAP_F_B) run one after the
///           other here. Transfers cost costs.of_transfer(s) between s and s+1.
OrderGraph make_order_graph(const Schedule& schedule, const ScheduleCosts& costs);

/// The lists of a schedule as nodes, and back.
NodeLists nodes_of(const OrderGraph& graph, const Schedule& schedule);
Schedule schedule_of(const OrderGraph& graph, const NodeLists& lists);

}  // namespace vpp
