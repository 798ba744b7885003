#include "optim/groups.hpp"

#include <algorithm>

#include "base/glob.hpp"
#include "plan/optimizer_groups.hpp"

namespace vpp {

namespace {

std::string list_of(const std::vector<std::string>& patterns) {
    std::string list;
    for (const std::string& pattern : patterns) list += (list.empty() ? "'" : ", '") + printable(pattern) + "'";
    return list;
}

/// Why a group takes nothing, and what would mend it.
std::string reason(const OptimizerPlan& plan, size_t group, const std::vector<std::string>& names,
                   const std::vector<std::string>& frozen) {
    const std::string patterns = list_of(plan.groups[group].match);
    const auto matches = [&](const std::string& name) { return any_glob_matches(plan.groups[group].match, name); };
    const auto found = std::find_if(names.begin(), names.end(), matches);
    if (found != names.end()) {
        return "every parameter that " + patterns + " matches is taken by an earlier group ('" + printable(*found) +
               "' by group " + std::to_string(group_of(plan, *found)) + "); put this group first";
    }
    const auto still = std::find_if(frozen.begin(), frozen.end(), matches);
    if (still != frozen.end()) {
        return "no parameter that " + patterns + " matches is trained ('" + printable(*still) +
               "' is frozen); leave the group out, or look at model.freeze";
    }
    const std::string example = names.empty() ? "" : "; names look like '" + printable(names.front()) + "'";
    return "no parameter of the model matches " + patterns + example;
}

}  // namespace

std::vector<int> match_counts(const OptimizerPlan& plan, const std::vector<std::string>& names) {
    std::vector<int> counts(plan.groups.size() + 1);
    for (const std::string& name : names) ++counts[static_cast<size_t>(group_of(plan, name))];
    counts.pop_back();
    return counts;
}

std::vector<Problem> check_groups(const Plan& plan, const std::vector<std::string>& names,
                                  const std::vector<std::string>& frozen) {
    std::vector<Problem> problems;
    const std::vector<int> counts = match_counts(plan.optimizer, names);
    for (size_t i = 0; i < counts.size(); ++i) {
        if (counts[i] > 0) continue;
        const std::string key = "optimizer.group[" + std::to_string(i) + "].match";
        problems.push_back({key + ": " + reason(plan.optimizer, i, names, frozen), plan.where(key)});
    }
    return problems;
}

}  // namespace vpp
