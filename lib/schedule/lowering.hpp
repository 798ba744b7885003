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

#include "schedule/costs.hpp"
#include "schedule/schedule.hpp"

namespace vpp {

/// Where receives stand (schedule/message_order.hpp).
enum class MessageOrder {
    BeforeConsumer,  ///< for tagged channels
    Channels,        ///< for channels that keep the order, where sends do not wait
    Global,          ///< the same for sends that wait for their receives
};

struct LoweringOptions {
    bool reduce_gradients = false;  ///< add_reductions
    MessageOrder order = MessageOrder::BeforeConsumer;
    ScheduleCosts costs = {};  ///< for Global: when sends are done
};

/// The same schedule with SEND and RECV for every edge, in the order of `edges` where several belong to one action.
/// I takes the place of B where the backward is split. A forward-only schedule gets no gradient transfers.
/// Requires: computing actions of existing stages only; edges as in routes_of (schedule/edges.hpp).
/// Tied parameters: the gradient is sent after B or W of the consumer and received before B or W of gradient_to.
Schedule lower(const Schedule& compute, const std::vector<ScheduleEdge>& edges, const LoweringOptions& options = {});

/// Adds REDUCE_GRAD for each stage that has none: behind its last B or W and the sends that follow.
void add_reductions(Schedule& lowered);

}  // namespace vpp
