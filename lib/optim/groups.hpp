#pragma once
// Parameter groups: which of the plan's [[optimizer.group]] tables takes a parameter. The first group with a glob that
// matches the name does; what none takes is in the default group, which has the optimizer's own values and stands last.
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.hpp"

namespace vpp {

/// The group that takes the parameter: an index into plan.groups, or their number for the default group.
int group_of(const OptimizerPlan& plan, std::string_view name);

/// How many of the names each declared group takes. Only over all parameters of the model does a 0 mean a mistake.
std::vector<int> match_counts(const OptimizerPlan& plan, const std::vector<std::string>& names);

/// One problem, with its position, for each group that takes no parameter that is trained.
/// Requires: names are those of all parameters that are trained, whichever rank holds them; frozen are all others.
std::vector<Problem> check_groups(const Plan& plan, const std::vector<std::string>& names,
                                  const std::vector<std::string>& frozen = {});

}  // namespace vpp
