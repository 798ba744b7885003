#pragma once
// The program of a plan in this process, for commands that look at it without running it.
#include "plan/plan.hpp"
#include "program/program.hpp"

namespace vpp {

/// What rank 0 of a job would prepare: the same bytes.
/// Requires: a plan resolved for its world.
/// Throws:   what prepare throws (program/prepare.hpp), and Error{Plan} for rules between plan and model.
Program make_program(const Plan& plan);

}  // namespace vpp
