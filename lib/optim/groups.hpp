#pragma once
// Parameter groups (plan/optimizer_groups.hpp) beside the parameters that a model has.
#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace vpp {

/// How many of the names each declared group takes. Only over all parameters of the model does a 0 mean a mistake.
std::vector<int> match_counts(const OptimizerPlan& plan, const std::vector<std::string>& names);

/// One problem, with its position, for each group that takes no parameter that is trained.
/// Requires: names are those of all parameters that are trained, whichever rank holds them; frozen are all others.
std::vector<Problem> check_groups(const Plan& plan, const std::vector<std::string>& names,
                                  const std::vector<std::string>& frozen = {});

}  // namespace vpp
