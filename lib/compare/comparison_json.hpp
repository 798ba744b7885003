#pragma once
// Runs side by side for other programs.
#include <string>

#include "compare/comparison.hpp"

namespace vpp {

/// {"runs":[{"mark":"A","run":"runs/a","state":"finished","settings":{"optimizer.lr":"0.1"},"step":300,...}]}
/// `settings` are those that differ, as texts; null is what is not known or no finite number. Rates are medians of the
/// steps, bubbles means.
std::string comparison_json(const Comparison& comparison);

}  // namespace vpp
