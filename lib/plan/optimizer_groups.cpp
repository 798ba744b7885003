#include "plan/optimizer_groups.hpp"

#include <algorithm>

#include "base/glob.hpp"

namespace vpp {

int group_of(const OptimizerPlan& plan, std::string_view name) {
    const auto found = std::find_if(plan.groups.begin(), plan.groups.end(),
                                    [&](const OptimizerGroup& group) { return any_glob_matches(group.match, name); });
    return static_cast<int>(found - plan.groups.begin());
}

const OptimizerValues& values_of(const OptimizerPlan& plan, std::string_view name) {
    const auto group = static_cast<size_t>(group_of(plan, name));
    return group < plan.groups.size() ? plan.groups[group].values : plan.values;
}

}  // namespace vpp
