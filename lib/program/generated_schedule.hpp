#pragma once
// schedule_type = a schedule of the registry (schedule/generators.hpp): what the plan's numbers make of it.
#include "plan/plan.hpp"
#include "schedule/schedule.hpp"

namespace vpp {

/// The computing actions of training. Needs the plan alone, so that numbers which do not fit are found before anything
/// is opened.
/// Requires: a resolved plan whose schedule_type is not CUSTOM (program/custom_schedule.hpp).
/// Throws:   Error{Plan} at pipeline.schedule_type, or at pipeline.virtual_chunks when that stands in the plan.
Schedule generate_schedule(const Plan& plan);

}  // namespace vpp
