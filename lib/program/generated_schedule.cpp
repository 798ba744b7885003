#include "program/generated_schedule.hpp"

#include "base/error.hpp"
#include "schedule/generators.hpp"

namespace vpp {

Schedule generate_schedule(const Plan& plan) {
    const PipelinePlan& pipeline = plan.pipeline;
    ScheduleRequest request{.size = {*plan.mesh.pp, pipeline.virtual_chunks, *pipeline.num_microbatches}};
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
