#pragma once
// From the computing actions of a schedule to the lists that ranks run, as the plan's transport needs them.
#include "graph/stages.hpp"
#include "plan/plan.hpp"
#include "schedule/checker.hpp"
#include "schedule/lowering.hpp"

namespace vpp {

/// How transfers stand among the actions. NCCL's links keep the order of their messages; without overlap a send waits
/// until its receive is reached, so transfers need one order for the whole job; MPI takes any.
MessageOrder message_order(const Plan& plan);

/// What lists in that order are held to.
CheckOptions check_options(MessageOrder order, bool reduces);

/// Lowers, and proves the result before anyone relies on it. `reduces`: there are replicas whose gradients are summed.
Schedule lower_and_prove(const Schedule& compute, const Split& split, MessageOrder order, bool reduces);

}  // namespace vpp
