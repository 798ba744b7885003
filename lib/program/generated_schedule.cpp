#include "program/generated_schedule.hpp"

#include "base/error.hpp"
#include "schedule/generators.hpp"

namespace vpp {

std::optional<Schedule> generate_schedule(const Plan& plan) {
    const ScheduleKind* kind = find_schedule_kind(plan.pipeline.schedule_type);
    if (!kind) return std::nullopt;
    const int stages_per_rank = plan.pipeline.virtual_chunks;
    const bool is_refused = stages_per_rank < kind->fewest_per_rank || stages_per_rank > kind->most_per_rank;
    if (kind->uses_costs && !is_refused) return std::nullopt;
    return generate_schedule(plan, {}, std::nullopt);
}

Schedule generate_schedule(const Plan& plan, const ScheduleCosts& costs, std::optional<double> memory_limit) {
    const PipelinePlan& pipeline = plan.pipeline;
    ScheduleRequest request{.size = {*plan.mesh.pp, pipeline.virtual_chunks, *pipeline.num_microbatches}};
    request.costs = costs;
    request.memory_limit = memory_limit;
    request.interleave_group = pipeline.interleave_group_size;
    try {
        return make_schedule(pipeline.schedule_type, request);
    } catch (const Error& error) {
        const bool names_chunks = plan.where("pipeline.virtual_chunks").has_value();
        throw Error(error.kind(), error.problems().front().message,
                    plan.where(names_chunks ? "pipeline.virtual_chunks" : "pipeline.schedule_type"));
    }
}

}  // namespace vpp
