#pragma once
// Samples that a loss of classes counts nothing of: the mean over their targets is that of none, which is NaN.
#include <span>
#include <string>

#include "data/dataset.hpp"
#include "plan/plan.hpp"

namespace vpp {

/// In words, where every target of these samples is loss.ignore_index and the loss is a mean; else empty.
/// Throws: what reading a sample throws.
std::string all_targets_ignored(const Plan& plan, const Dataset& data, std::span<const Draw> samples);

}  // namespace vpp
