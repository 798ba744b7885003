#pragma once
// Puts I and W together again where they stand side by side and nobody waits for the gap between them: one backward has
// less to do than its halves on a real device, whatever the assumed costs say.
#include "schedule/order_graph.hpp"

namespace vpp {

/// The same order with B for as many neighbouring I and W of one stage and microbatch as leave makespan or span as good
/// as they are. Tries all at once, then halves of those that cost something; the number of tries is bounded, so that
/// long schedules take no longer than about a second.
/// Requires: a schedule that check_schedule would prove, without pairs (OVERLAP_F_B).
Schedule merge_backwards(const Schedule& schedule, const ScheduleCosts& costs, SearchObjective objective);

}  // namespace vpp
