#pragma once
// A Plan written back as TOML.
#include <string>

#include "plan/plan.hpp"

namespace vpp {

/// Every key that has a value, as TOML in the order of the table; paths relative to the plan as they were
/// written. Equal plans have equal texts wherever they lie, and the text read again is the same plan. Keys without a
/// value (mesh.pp before resolve_plan, [loss] when there is none) are left out.
std::string plan_text(const Plan& plan);

}  // namespace vpp
