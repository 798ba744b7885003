#pragma once
// Plan and Program -> Inspection.
#include "plan/plan.hpp"
#include "program/inspection.hpp"
#include "program/program.hpp"
#include "schedule/held_sends.hpp"

namespace vpp {

struct InspectOptions {
    Machine machine;
    /// How far the tree of submodules is opened where one lies in one stage; one that lies in several always is.
    int depth = 2;
    MessageBuffers buffers{};
};

/// Computes everything that `vpp inspect` shows, but Inspection::search.
/// Requires: a resolved plan and its program, which has a training phase.
Inspection inspect_program(const Plan& plan, const Program& program, const InspectOptions& options = {});

}  // namespace vpp
