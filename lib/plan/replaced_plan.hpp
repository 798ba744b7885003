#pragma once
// A training writes its resolved plan into its run folder, as plan.toml. Where that is the folder of the plan itself, a
// text that a person wrote would be lost.
#include "plan/keys.hpp"
#include "plan/plan.hpp"

namespace vpp {

/// Refuses a run.dir whose plan.toml is the plan itself, unless that is a resolved plan: one whose lines all stand in
/// its resolved text, so that nothing is lost.
/// Throws: Error{Plan}; Error{Io} when the file cannot be read.
void check_replaced_plan(const Plan& plan, const Names& names);

}  // namespace vpp
