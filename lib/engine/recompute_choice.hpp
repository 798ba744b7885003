#pragma once
// What `vpp verify --recompute` takes: [pipeline.recompute] in one word.
#include <string>

#include "plan/plan.hpp"

namespace vpp {

/// "none", "stage", "units", "units:2" (so many make a segment), "modules:blocks.*:head" (FQNs, globs or class names);
/// ":except_last" behind any but "none": the last microbatch keeps its activations. "units" and "modules" alone take
/// `every` and `modules` of `own`, the plan's section, where that is of their kind.
/// Throws Error{CommandLine}: another word; "modules" alone where the plan lists none.
RecomputePlan recompute_from_text(const std::string& text, const RecomputePlan& own);

}  // namespace vpp
