#pragma once
// pipeline.memory_limit at work: what a limit in bytes means for generators and the search, and whether a schedule
// keeps to it.
#include <optional>

#include "graph/stages.hpp"
#include "plan/plan.hpp"
#include "schedule/costs.hpp"
#include "schedule/schedule.hpp"
#include "schedule/size.hpp"

namespace vpp {

/// The limit in activations of a microbatch on a full rank; none = no limit. Bytes are divided by what the fullest rank
/// keeps of one microbatch (StageSpec::activation_bytes, an upper bound), in the placement, loop or v, in which that is
/// more: no rank keeps more bytes than the limit then. The gradients that a backward works with come on top.
/// Requires: a split into the stages of `size`.
/// Throws:   Error{Plan} at pipeline.memory_limit when the bytes are less than one microbatch needs.
std::optional<double> activation_limit(const Plan& plan, const Split& split, const ScheduleSize& size);

/// Generators that do not look at the limit may be above it, and tied weights make activations wait for their W
/// (schedule/tied_order.hpp). A limit in bytes is compared with the bytes of each rank.
/// Requires: the schedule as it will run: with tied weights, in the order that order_tied gives at `costs`, those of
///           the split.
/// Throws:   Error{Plan} at pipeline.memory_limit naming the peak and the schedules that fit with these stages.
void check_activations(const Plan& plan, const Schedule& schedule, const Split& split, const ScheduleCosts& costs);

}  // namespace vpp
