#pragma once
// Which targets a loss of classes counts: all but loss.ignore_index. The mean over none of them is NaN.
#include <cstdint>
#include <span>
#include <string>

#include "data/dataset.hpp"
#include "plan/plan.hpp"

namespace vpp {

/// How many of these samples' targets count.
/// Requires: [loss] is over classes and its targets are such, no probabilities.  Throws: what reading a sample throws.
int64_t count_targets(const Plan& plan, const Dataset& data, std::span<const Draw> samples);

/// In words, where none of them does and the loss of a microbatch is a mean; else empty.
/// Throws: what reading a sample throws.
std::string all_targets_ignored(const Plan& plan, const Dataset& data, std::span<const Draw> samples);

}  // namespace vpp
