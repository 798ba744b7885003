#pragma once
// Tied weights and schedules that split the backward. The gradient of a tied parameter goes from its last user to its
// owner, W after W, for each microbatch. Generators know nothing of that: where the last stage postpones its W, the
// owner's W waits for it, and with it all that stands behind it on the owner's rank; with three users it may even be a
// deadlock. W can wait: nothing but memory depends on it.
#include <vector>

#include "schedule/costs.hpp"
#include "schedule/schedule.hpp"

namespace vpp {

/// The same schedule, in which every W that takes gradients of tied parameters stands where, in a run at `costs`, they
/// have arrived: at its own place if they are there by then, else at the first place where they are. A B that would
/// have to wait for them becomes I at its place and W later (a paired one too). Nothing else moves: the order of F and
/// of I (or B) stays, and that of W within a stage. So it ends whenever the given lists do without tied edges: no
/// F, I or B waits for a W of a tied parameter.
/// The price is memory: an activation is held to its W (peak_in_flight, peak_memory).
/// Without tied edges, and for schedules that have no I (there the later B is always done before), it is unchanged.
///
/// Requires: computing actions of existing stages and microbatches, each once; edges as in routes_of; costs as in
///           simulate. Of lists that do not end without tied edges the rest is left as it is: check_schedule refuses.
Schedule order_tied(const Schedule& compute, const std::vector<ScheduleEdge>& edges, const ScheduleCosts& costs = {});

}  // namespace vpp
