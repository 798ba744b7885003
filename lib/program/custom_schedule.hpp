#pragma once
// schedule_type = "CUSTOM": the plan's own schedule, from a file.
#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "schedule/schedule.hpp"

namespace vpp {

struct CustomSchedule {
    Schedule lowered;                ///< over the edges, proved
    std::vector<std::string> notes;  ///< for the log
};

/// Reads pipeline.schedule_file. A lowered file keeps its order of transfers; REDUCE_GRAD in it is dropped
/// where there is one replica, and added where there are several and the file lacks it.
/// Throws: Error{MissingInput, BadData} for the file itself; Error{Plan} when ranks, stages or microbatches are not
///         those of the plan, or when it has actions that the engine cannot run yet.
CustomSchedule read_custom_schedule(const Plan& plan, const std::vector<ScheduleEdge>& edges);

}  // namespace vpp
