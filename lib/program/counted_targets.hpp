#pragma once
// Which targets a loss of classes counts: all but its ignore_index. The mean over none of them is NaN.
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "data/dataset.hpp"
#include "graph/graph.hpp"
#include "plan/plan.hpp"

namespace vpp {

struct CountedTargets {
    std::string field;  ///< of the data, integers
    int64_t ignore_index = 0;

    /// "ignore_index (-100)".
    std::string ignored_text() const { return "ignore_index (" + std::to_string(ignore_index) + ")"; }
};

/// Where an op of that kind makes the graph's loss, of a data field as it is: by [loss] or in forward.
std::optional<CountedTargets> find_counted_targets(const Graph& graph);

/// What a mean over targets counts.  Throws Error{Plan} where the loss has no such targets.
CountedTargets counted_targets(const Plan& plan, const Graph& graph);

/// How many of these samples' targets count.  Throws: what reading a sample throws.
int64_t count_targets(const CountedTargets& counted, const Dataset& data, std::span<const Draw> samples);

/// In words, where none of them does; else empty.  Throws: what reading a sample throws.
std::string all_targets_ignored(const Graph& graph, const Dataset& data, std::span<const Draw> samples);

}  // namespace vpp
