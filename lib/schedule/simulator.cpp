#include "schedule/simulator.hpp"

#include <algorithm>
#include <unordered_map>

#include "base/error.hpp"
#include "schedule/messages.hpp"
#include "schedule/replay.hpp"

namespace vpp {

namespace {

double idle_part(const std::vector<Ticks>& busy, Ticks cost) {
    if (cost <= 0) return 0;
    double idle = 0;
    for (Ticks of_rank : busy) idle += static_cast<double>(cost - of_rank);
    return idle / (static_cast<double>(cost) * static_cast<double>(busy.size()));
}

void check_costs(const Schedule& lowered, const ScheduleCosts& costs) {
    const bool for_every_stage = costs.stages.empty() || costs.stages.size() == lowered.rank_of_stage.size();
    check(for_every_stage, "every stage has costs");
    for (const StageCosts& stage : costs.stages) {
        for (ActionKind kind : {ActionKind::F, ActionKind::B, ActionKind::I, ActionKind::W}) {
            check(stage.of(kind) >= 0, "costs are not negative");
        }
    }
    check(costs.transfer >= 0 && costs.occupied >= 0, "costs are not negative");
    for (const auto& [edge, transfer] : costs.transfer_of) check(transfer >= 0, "costs are not negative");
    for (const auto& [edge, occupied] : costs.occupied_of) check(occupied >= 0, "costs are not negative");
    check(costs.occupied <= costs.transfer, "a message occupies its channel for a part of its transfer");
    for (const auto* by_edge : {&costs.transfer_of, &costs.occupied_of}) {
        for (const auto& [edge, ticks] : *by_edge) {
            check(costs.of_occupied(edge) <= costs.of_transfer(edge),
                  "a message occupies its channel for a part of its transfer");
        }
    }
}

/// The span of each rank from the start of its first computing action to its last end: a first RECV waits from time 0.
Ticks largest_span(const Schedule& lowered, const Simulation& simulation) {
    Ticks span = 0;
    for (size_t rank = 0; rank < lowered.actions.size(); ++rank) {
        const std::vector<Action>& list = lowered.actions[rank];
        const auto first = std::find_if(list.begin(), list.end(), [](const Action& a) { return is_computing(a.kind); });
        if (first == list.end()) continue;
        const Ticks start = simulation.times[rank][static_cast<size_t>(first - list.begin())].start;
        span = std::max(span, simulation.times[rank].back().end - start);
    }
    return span;
}

/// When messages arrive.
class Transfers {
  public:
    Transfers(const Schedule& lowered, const ScheduleCosts& costs)
        : costs_(costs),
          has_channels_(costs.has_channels()),
          num_ranks_(lowered.num_ranks),
          number_(lowered),
          arrival_(number_.size(), 0) {}

    void send(int rank, const Action& action, Ticks start) {
        if (has_channels_) {
            Ticks& busy_until = busy_until_[int64_t{rank} * num_ranks_ + action.peer];
            start = std::max(start, busy_until);
            busy_until = start + costs_.of_occupied(action.edge);
        }
        arrival_[number_(action)] = start + costs_.of_transfer(action.edge);
    }
    Ticks arrival(const Action& action) const { return arrival_[number_(action)]; }

  private:
    const ScheduleCosts& costs_;
    const bool has_channels_;
    const int num_ranks_;
    const MessageNumbers number_;
    std::vector<Ticks> arrival_;                     ///< by message
    std::unordered_map<int64_t, Ticks> busy_until_;  ///< by from and to rank
};

}  // namespace

double Simulation::bubble_rate() const {
    return idle_part(busy, makespan);
}
double Simulation::span_bubble_rate() const {
    return idle_part(busy, span);
}

Simulation simulate(const Schedule& lowered, const ScheduleCosts& costs) {
    check_costs(lowered, costs);
    Simulation simulation;
    simulation.busy.assign(lowered.actions.size(), 0);
    for (const std::vector<Action>& list : lowered.actions) simulation.times.emplace_back().reserve(list.size());

    Transfers transfers(lowered, costs);
    const std::vector<size_t> done = replay(lowered, [&](int rank_number, size_t index) {
        const auto rank = static_cast<size_t>(rank_number);
        const Action& action = lowered.actions[rank][index];
        std::vector<ActionTime>& times = simulation.times[rank];
        const bool second_of_pair = index > 0 && lowered.actions[rank][index - 1].paired;
        const Ticks start = times.empty() ? 0 : second_of_pair ? times.back().start : times.back().end;
        Ticks end = start + costs.of_stage(action.stage).of(action.kind);
        if (action.paired) {
            end = start + costs.of_pair(action, lowered.actions[rank].at(index + 1));
        } else if (second_of_pair) {
            end = times.back().end;
        } else if (is_send(action.kind)) {
            transfers.send(rank_number, action, start);
        } else if (is_receive(action.kind)) {
            end = std::max(start, transfers.arrival(action));
        }
        times.push_back({start, end});
        if (is_computing(action.kind) && !second_of_pair) simulation.busy[rank] += end - start;
        simulation.makespan = std::max(simulation.makespan, end);
    });
    for (size_t rank = 0; rank < done.size(); ++rank) {
        check(done[rank] == lowered.actions[rank].size(), "a simulated schedule ends");
    }
    simulation.span = largest_span(lowered, simulation);
    return simulation;
}

}  // namespace vpp
