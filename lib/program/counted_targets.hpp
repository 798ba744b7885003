#pragma once
// Which targets a loss of classes counts: all but its ignore_index. How many of a step do is known before the step,
// from the data: engine/target_count.hpp. The mean over none of them is NaN.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.hpp"
#include "graph/source.hpp"
#include "plan/plan.hpp"

namespace vpp {

struct CountedTargets {
    std::vector<int> inputs;  ///< of the model, which the targets are made from
    std::vector<int> ops;     ///< that make them, ascending
    int value = -1;           ///< the targets, integers
    int64_t ignore_index = 0;

    /// What makes them of the inputs.
    OpSelection selection(const Graph& graph) const;
    /// "ignore_index (-100)".
    std::string ignored_text() const { return "ignore_index (" + std::to_string(ignore_index) + ")"; }
};

/// Where an op of that kind makes the graph's loss, by [loss] or in forward, of targets that are made from data alone:
/// shifted, padded, masked or as they are.
std::optional<CountedTargets> find_counted_targets(const Graph& graph);

/// What a mean over targets counts.  Throws Error{Plan} where the loss has no such targets.
CountedTargets counted_targets(const Plan& plan, const Graph& graph);

}  // namespace vpp
