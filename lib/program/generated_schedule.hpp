#pragma once
// schedule_type = a schedule of the registry (schedule/generators.hpp): what the plan's numbers make of it.
#include <optional>

#include "plan/plan.hpp"
#include "schedule/costs.hpp"
#include "schedule/schedule.hpp"

namespace vpp {

/// The computing actions of training, where the plan alone decides them, so that numbers which do not fit are found
/// before anything is opened. None for CUSTOM (program/custom_schedule.hpp), AUTO (program/searched_schedule.hpp), and
/// schedules that look at costs.
/// Requires: a resolved plan.
/// Throws:   Error{Plan} at pipeline.schedule_type, or at pipeline.virtual_chunks when that stands in the plan.
std::optional<Schedule> generate_schedule(const Plan& plan);

/// The computing actions of training of any schedule of the registry, at the costs of the plan's stages and with a
/// limit in activations of a microbatch on a full rank (program/activation_limit.hpp), for those that look at them.
Schedule generate_schedule(const Plan& plan, const ScheduleCosts& costs, std::optional<double> memory_limit);

}  // namespace vpp
