#pragma once
// What a plan must say for a command that trains; other commands take it without.
#include "plan/plan.hpp"

namespace vpp {

/// Refuses a plan that trains nothing: forward_only, or a schedule that needs a key which is left out.
/// Throws: Error{Plan}.
void check_trains(const Plan& plan);

/// Refuses a plan that does not say how long to train. Throws: Error{Plan}.
void check_length(const Plan& plan);

}  // namespace vpp
