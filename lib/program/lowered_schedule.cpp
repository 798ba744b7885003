#include "program/lowered_schedule.hpp"

#include "plan/transports.hpp"

namespace vpp {

MessageOrder message_order(const Plan& plan) {
    if (!plan.pipeline.overlap_p2p_comm) return MessageOrder::Global;
    return transport_named(plan.mesh.transport).keeps_order ? MessageOrder::Channels : MessageOrder::BeforeConsumer;
}

CheckOptions check_options(MessageOrder order, bool reduces) {
    return {.ordered_channels = order == MessageOrder::Channels,
            .rendezvous = order == MessageOrder::Global,
            .reduces = reduces};
}

Schedule lower_and_prove(const Schedule& compute, const Split& split, MessageOrder order, bool reduces) {
    const std::vector<ScheduleEdge> edges = schedule_edges(split);
    Schedule lowered = lower(compute, edges, {.reduce_gradients = reduces, .order = order});
    check_schedule(lowered, edges, check_options(order, reduces));
    return lowered;
}

}  // namespace vpp
