#pragma once
// Lowering: adds the transfers to a schedule of computing actions.
//   rank of the producer:  ... F(producer)  SEND_F ...      rank of the consumer:  ... RECV_F  F(consumer) ...
//   rank of the consumer:  ... B(consumer)  SEND_B ...      rank of gradient_to:   ... RECV_B  B(gradient_to) ...
// A value or gradient that stays on its rank is handed over without an action. A pair (OVERLAP_F_B) keeps together:
// the receives of both stand before it, the sends of both behind it.
//
// Every RECV stands immediately before its consumer, since the engine waits there and nowhere else; receives are posted
// ahead and sends never block. Messages are matched by (edge, microbatch, direction), not by their order, so whenever
// the computing actions can run in their order, the lowered lists can too; check_schedule proves it for each schedule.
#include <vector>

#include "schedule/schedule.hpp"

namespace vpp {

/// The same schedule with SEND and RECV for every edge, in the order of `edges` where several belong to one action.
/// I takes the place of B where the backward is split. A forward-only schedule gets no gradient transfers.
/// Requires: computing actions of existing stages only; edges as in routes_of (schedule/edges.hpp).
Schedule lower(const Schedule& compute, const std::vector<ScheduleEdge>& edges);

}  // namespace vpp
