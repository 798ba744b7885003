#include "program/generated_schedule.hpp"

#include "base/error.hpp"
#include "schedule/generators.hpp"

namespace vpp {

namespace {

/// Of the key whose number the message names as what it got; of the schedule where the plan leaves that key out.
std::optional<SourcePosition> position_of(const std::string& message, const Plan& plan) {
    for (const char* key : {"virtual_chunks", "num_microbatches", "interleave_group_size", "memory_limit"}) {
        const auto where = plan.where(std::string("pipeline.") + key);
        if (where && message.find(std::string("(got ") + key + " = ") != std::string::npos) return where;
    }
    return plan.where("pipeline.schedule_type");
}

}  // namespace

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
        const std::string& message = error.problems().front().message;
        throw Error(error.kind(), message, position_of(message, plan));
    }
}

}  // namespace vpp
