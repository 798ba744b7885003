#pragma once
// Which of the plan's [[optimizer.group]] tables takes a parameter: the first with a glob that matches its name.
#include <string_view>

#include "plan/plan.hpp"

namespace vpp {

/// An index into plan.groups, or their number for the default group, which has the optimizer's own values.
int group_of(const OptimizerPlan& plan, std::string_view name);

/// The values of that group.
const OptimizerValues& values_of(const OptimizerPlan& plan, std::string_view name);

}  // namespace vpp
