#pragma once
// A schedule by a plain list in time: for any placement, any costs and any memory limit that can be met at all. Order
// search starts from it too, where no generator knows the placement or fits the limit.
#include "schedule/placement.hpp"
#include "schedule/request.hpp"
#include "schedule/schedule.hpp"

namespace vpp {

/// Whichever rank can start first does its next action: what can start soonest; of several I (or B) before F before W,
/// then the oldest microbatch, then the highest stage. A microbatch enters a rank's lowest stage only while fewer than
/// K = floor(memory_limit) others are on their way there, first F to last W, so each has room for all stages of the
/// rank: the oldest one can always go on, and nothing deadlocks. Without a limit K = M.
///
/// Peak:     at most K v stage activations on every rank
/// Requires: a checked size, K >= 1: a microbatch is in all stages of a rank at once, so no order holds less.
Schedule make_list_order(const ScheduleRequest& request, Placement placement, bool split_backward);

}  // namespace vpp
