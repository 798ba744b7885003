#include "schedule/comparison.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/units.hpp"
#include "schedule/checker.hpp"
#include "schedule/edges.hpp"
#include "schedule/generators.hpp"
#include "schedule/lowering.hpp"

namespace vpp {

namespace {

constexpr int kUsualPerRank = 2;

ScheduleMetrics measure_kind(const ScheduleKind& kind, const ComparisonRequest& request, int stages_per_rank) {
    const ScheduleSize size{request.num_ranks, stages_per_rank, request.num_microbatches};
    check_size(size);
    const ScheduleCosts costs = parse_costs(request.costs, size);
    const Schedule compute = make_schedule(kind.name, {size, costs, request.memory_limit, request.interleave_group});
    const std::vector<ScheduleEdge> edges = chain_edges(compute.num_stages());
    const Schedule lowered = lower(compute, edges);
    check_schedule(lowered, edges);
    return measure_schedule(lowered, costs);
}

/// The numbers of stages per rank to try in turn.
std::vector<int> per_rank_choices(const ScheduleKind& kind, const ComparisonRequest& request) {
    const int wanted = request.stages_per_rank.value_or(kUsualPerRank);
    const int nearest = std::clamp(wanted, kind.fewest_per_rank, kind.most_per_rank);
    if (request.stages_per_rank || nearest == kind.fewest_per_rank) return {nearest};
    return {nearest, kind.fewest_per_rank};
}

}  // namespace

ScheduleComparison compare_schedules(const ComparisonRequest& request) {
    ScheduleComparison comparison;
    bool all_refuse_costs = true;
    std::string refusal;  // the first for as many stages a rank as were asked for
    for (const ScheduleKind& kind : schedule_kinds()) {
        if (!kind.trains || kind.is_other_spelling()) continue;
        std::string reason;
        for (int stages_per_rank : per_rank_choices(kind, request)) {
            try {
                const ScheduleMetrics metrics = measure_kind(kind, request, stages_per_rank);
                all_refuse_costs = false;
                if (request.memory_limit && !(metrics.peak_activations() <= *request.memory_limit)) {
                    reason = "it keeps " + fixed_text(metrics.peak_activations(), 2) + " microbatches";
                    continue;
                }
                comparison.rows.push_back(metrics);
                reason.clear();
                break;
            } catch (const Error& error) {
                if (error.kind() != ErrorKind::Plan && error.kind() != ErrorKind::CommandLine) throw;
                all_refuse_costs = all_refuse_costs && error.kind() == ErrorKind::CommandLine;
                reason = error.what();
                const bool is_wanted = stages_per_rank == request.stages_per_rank.value_or(stages_per_rank);
                if (is_wanted && refusal.empty()) refusal = reason;
            }
        }
        if (!reason.empty()) comparison.left_out.push_back({kind.name, reason});
    }
    if (all_refuse_costs) throw Error(ErrorKind::CommandLine, refusal);
    return comparison;
}

}  // namespace vpp
