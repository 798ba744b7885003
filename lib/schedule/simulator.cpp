#include "schedule/simulator.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "base/error.hpp"
#include "schedule/replay.hpp"

namespace vpp {

namespace {

double idle_part(const std::vector<double>& busy_ms, double cost_ms) {
    if (cost_ms <= 0) return 0;
    const double busy = std::accumulate(busy_ms.begin(), busy_ms.end(), 0.0) / static_cast<double>(busy_ms.size());
    return (cost_ms - busy) / cost_ms;
}

void check_costs(const Schedule& lowered, const ScheduleCosts& costs) {
    const bool for_every_stage = costs.stages.empty() || costs.stages.size() == lowered.rank_of_stage.size();
    check(for_every_stage, "every stage has costs");
    for (const StageCosts& stage : costs.stages) {
        for (ActionKind kind : {ActionKind::F, ActionKind::B, ActionKind::I, ActionKind::W}) {
            check(stage.of(kind) >= 0, "costs are not negative");
        }
    }
    for (const auto& [edge, transfer_ms] : costs.transfer_ms) check(transfer_ms >= 0, "costs are not negative");
}

/// The span of each rank from the start of its first computing action to its last end: a first RECV waits from time 0.
double largest_span(const Schedule& lowered, const Simulation& simulation) {
    double span_ms = 0;
    for (size_t rank = 0; rank < lowered.actions.size(); ++rank) {
        const std::vector<Action>& list = lowered.actions[rank];
        const auto first = std::find_if(list.begin(), list.end(), [](const Action& a) { return is_computing(a.kind); });
        if (first == list.end()) continue;
        const double start_ms = simulation.times[rank][static_cast<size_t>(first - list.begin())].start_ms;
        span_ms = std::max(span_ms, simulation.times[rank].back().end_ms - start_ms);
    }
    return span_ms;
}

}  // namespace

double StageCosts::of(ActionKind kind) const {
    switch (kind) {
        case ActionKind::F:
            return forward_ms;
        case ActionKind::B:
            return backward_ms;
        case ActionKind::I:
            return input_gradient_ms;
        case ActionKind::W:
            return weight_gradient_ms;
        default:
            return 0;
    }
}

StageCosts ScheduleCosts::of_stage(int stage) const {
    return stages.empty() ? StageCosts{} : stages.at(static_cast<size_t>(stage));
}

double Simulation::bubble_rate() const {
    return idle_part(busy_ms, makespan_ms);
}
double Simulation::span_bubble_rate() const {
    return idle_part(busy_ms, span_ms);
}

Simulation simulate(const Schedule& lowered, const ScheduleCosts& costs) {
    check_costs(lowered, costs);
    Simulation simulation;
    simulation.busy_ms.assign(lowered.actions.size(), 0);
    for (const std::vector<Action>& list : lowered.actions) simulation.times.emplace_back().reserve(list.size());

    std::unordered_map<uint64_t, double> arrival_ms;
    const std::vector<size_t> done = replay(lowered, [&](int rank_number, size_t index) {
        const auto rank = static_cast<size_t>(rank_number);
        const Action& action = lowered.actions[rank][index];
        std::vector<ActionTime>& times = simulation.times[rank];
        const double start_ms = times.empty() ? 0 : times.back().end_ms;
        const double cost_ms = costs.of_stage(action.stage).of(action.kind);
        double end_ms = start_ms + cost_ms;
        if (is_send(action.kind)) {
            const auto transfer = costs.transfer_ms.find(action.edge);
            arrival_ms[message_key(action)] = start_ms + (transfer == costs.transfer_ms.end() ? 0 : transfer->second);
        } else if (is_receive(action.kind)) {
            end_ms = std::max(start_ms, arrival_ms.at(message_key(action)));
        }
        times.push_back({start_ms, end_ms});
        simulation.busy_ms[rank] += cost_ms;
        simulation.makespan_ms = std::max(simulation.makespan_ms, end_ms);
    });
    for (size_t rank = 0; rank < done.size(); ++rank) {
        check(done[rank] == lowered.actions[rank].size(), "a simulated schedule ends");
    }
    simulation.span_ms = largest_span(lowered, simulation);
    return simulation;
}

}  // namespace vpp
