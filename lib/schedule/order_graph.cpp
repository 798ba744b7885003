#include "schedule/order_graph.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace vpp {

namespace {

constexpr int kParts = 3;

int part_of(ActionKind kind) {
    check(is_computing(kind), "order search moves computing actions only");
    return kind == ActionKind::F ? 0 : gives_input_gradient(kind) ? 1 : 2;
}

int node_of(const OrderGraph& graph, const Action& action) {
    return kParts * (action.stage * graph.num_microbatches + action.microbatch) + part_of(action.kind);
}

void set_costs(OrderGraph& graph, const Schedule& schedule, const ScheduleCosts& costs) {
    for (const std::vector<Action>& list : schedule.actions) {
        for (const Action& action : list) {
            const auto node = static_cast<size_t>(node_of(graph, action));
            graph.kind[node] = action.kind;
            graph.cost[node] = costs.of_stage(action.stage).of(action.kind);
            if (action.kind == ActionKind::F) graph.held_more[node] = 1;
            if (gives_weight_gradient(action.kind)) graph.held_more[node] = -1;
        }
    }
}

/// F waits for F of the stage below, B and I for those of the stage above.
void set_dependencies(OrderGraph& graph, const ScheduleCosts& costs) {
    const int num_stages = static_cast<int>(graph.rank_of_stage.size());
    const int step = kParts * graph.num_microbatches;  // from a node to the same one of the next stage
    for (int s = 0; s + 1 < num_stages; ++s) {
        const auto stage = static_cast<size_t>(s);
        const bool same_rank = graph.rank_of_stage[stage] == graph.rank_of_stage[stage + 1];
        const Ticks lag = same_rank ? 0 : costs.of_transfer(s);
        for (int i = 0; i < graph.num_microbatches; ++i) {
            const int forward = s * step + kParts * i, gradient = forward + 1;
            const auto connect = [&](int from, int to) {
                graph.behind[static_cast<size_t>(from)] = to;
                graph.before[static_cast<size_t>(to)] = from;
                graph.lag[static_cast<size_t>(to)] = lag;
                if (same_rank) return;
                graph.sends_to[static_cast<size_t>(from)] = graph.rank(to);
                graph.occupied[static_cast<size_t>(from)] = costs.of_occupied(s);
            };
            connect(forward, forward + step);
            connect(gradient + step, gradient);
        }
    }
}

void set_tails(OrderGraph& graph) {
    const int num_stages = static_cast<int>(graph.rank_of_stage.size());
    const auto after = [&](int node) {
        const auto n = static_cast<size_t>(node);
        return graph.lag[n] + graph.cost[n] + graph.tail[n];
    };
    for (int i = 0; i < graph.num_microbatches; ++i) {
        const auto node = [&](int s, int part) { return kParts * (s * graph.num_microbatches + i) + part; };
        for (int s = 0; s < num_stages; ++s) {
            const Ticks weight = graph.cost[static_cast<size_t>(node(s, 2))];
            const Ticks chain = s == 0 ? 0 : after(node(s - 1, 1));
            graph.tail[static_cast<size_t>(node(s, 1))] = std::max(weight, chain);
        }
        for (int s = num_stages - 1; s >= 0; --s) {
            const auto own = static_cast<size_t>(node(s, 1));
            const Ticks turn = graph.cost[own] + graph.tail[own];
            graph.tail[static_cast<size_t>(node(s, 0))] = s + 1 == num_stages ? turn : after(node(s + 1, 0));
        }
    }
}

}  // namespace

OrderGraph make_order_graph(const Schedule& schedule, const ScheduleCosts& costs) {
    OrderGraph graph;
    graph.num_ranks = schedule.num_ranks;
    graph.num_microbatches = schedule.num_microbatches;
    graph.rank_of_stage = schedule.rank_of_stage;
    const auto num_nodes = static_cast<size_t>(kParts * schedule.num_stages() * schedule.num_microbatches);
    graph.kind.assign(num_nodes, ActionKind::W);
    graph.cost.assign(num_nodes, 0);
    graph.before.assign(num_nodes, OrderGraph::kNone);
    graph.behind.assign(num_nodes, OrderGraph::kNone);
    graph.lag.assign(num_nodes, 0);
    graph.has_channels = costs.has_channels();
    graph.sends_to.assign(num_nodes, OrderGraph::kNone);
    graph.occupied.assign(num_nodes, 0);
    graph.tail.assign(num_nodes, 0);
    graph.held_more.assign(num_nodes, 0);
    set_costs(graph, schedule, costs);
    set_dependencies(graph, costs);
    set_tails(graph);
    return graph;
}

NodeLists nodes_of(const OrderGraph& graph, const Schedule& schedule) {
    NodeLists lists;
    for (const std::vector<Action>& list : schedule.actions) {
        std::vector<int>& nodes = lists.emplace_back();
        for (const Action& action : list) nodes.push_back(node_of(graph, action));
    }
    return lists;
}

Schedule schedule_of(const OrderGraph& graph, const NodeLists& lists) {
    Schedule schedule{"AUTO", graph.num_ranks, graph.num_microbatches, graph.rank_of_stage, {}};
    for (const std::vector<int>& nodes : lists) {
        std::vector<Action>& list = schedule.actions.emplace_back();
        for (int node : nodes) list.push_back(graph.action(node));
    }
    return schedule;
}

}  // namespace vpp
