#include "schedule/metrics.hpp"

#include <algorithm>

namespace vpp {

namespace {

RankMetrics measure_rank(const Schedule& lowered, const ScheduleCosts& costs, const Simulation& simulation,
                         size_t rank) {
    RankMetrics metrics;
    metrics.busy = costs.units(simulation.busy[rank]);
    metrics.idle = costs.units(simulation.makespan - simulation.busy[rank]);
    const std::vector<Action>& list = lowered.actions[rank];
    bool has_started = false;
    for (size_t i = 0; i < list.size(); ++i) {
        if (is_send(list[i].kind)) ++metrics.num_sends;
        if (!is_computing(list[i].kind)) continue;
        const ActionTime& time = simulation.times[rank][i];
        if (!has_started) metrics.first_start = costs.units(time.start);
        has_started = true;
        metrics.last_end = costs.units(time.end);
    }
    return metrics;
}

}  // namespace

double ScheduleMetrics::peak_activations() const {
    double peak = 0;
    for (const RankMetrics& rank : ranks) peak = std::max(peak, rank.peak_activations);
    return peak;
}

ScheduleMetrics measure_schedule(const Schedule& lowered, const ScheduleCosts& costs) {
    const Simulation simulation = simulate(lowered, costs);
    ScheduleMetrics metrics;
    metrics.schedule = lowered.name;
    metrics.num_ranks = lowered.num_ranks;
    metrics.num_microbatches = lowered.num_microbatches;
    metrics.makespan = costs.units(simulation.makespan);
    metrics.span = costs.units(simulation.span);
    metrics.bubble_makespan = simulation.bubble_rate();
    metrics.bubble_span = simulation.span_bubble_rate();
    const std::vector<int> peaks = peak_in_flight(lowered);
    std::vector<int> num_stages(lowered.actions.size(), 0);
    for (int rank : lowered.rank_of_stage) ++num_stages[static_cast<size_t>(rank)];
    for (size_t rank = 0; rank < lowered.actions.size(); ++rank) {
        RankMetrics one = measure_rank(lowered, costs, simulation, rank);
        one.num_stages = num_stages[rank];
        if (one.num_stages > 0) one.peak_activations = static_cast<double>(peaks[rank]) / one.num_stages;
        metrics.stages_per_rank = std::max(metrics.stages_per_rank, one.num_stages);
        metrics.num_messages += one.num_sends;
        metrics.ranks.push_back(one);
    }
    return metrics;
}

}  // namespace vpp
