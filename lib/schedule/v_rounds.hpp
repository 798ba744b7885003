#pragma once
// ZB-V's greedy: two stages per rank in v placement, filled in rounds of one I and one F on every rank.
#include "schedule/request.hpp"
#include "schedule/v_list_scheduler.hpp"

namespace vpp {

/// Letters: a and b are a rank's stages on the way down and up.
/// 1. The first microbatch goes down; while it comes up again, ranks take more Fa as time and memory allow (2r + 1
///    places stay free on rank r for what follows). Then each rank catches up with the one before it, in F and by one
///    Fb more.
/// 2. Rounds. Each rank takes one I: Ia when its Ib are ahead and the gradient was there before the round or no Ib is
///    left, else Ib; Ia from the last rank to the first, then Ib from the first to the last. Then each takes one F: Fb
///    when it lags behind Fa and its value is there, else Fa.
/// 3. The remaining W.
///
/// W are done where memory needs them and where a wait has room for a whole one; also in a shorter wait that would make
/// the rank the one that has waited longest: before Ia always, before Ib and before F by a flag each (four passes). A
/// pass is repeated with the slack that each rank had in the last one, as long as the longest wait shrinks.
///
/// Gives the run of the narrowest span; `ended` is false when the rounds come to a stop (200,000 random shapes, costs
/// and limits did not).
/// Bubble:   at T_F = T_I = T_W, M >= 2P and room for P microbatches: span 0, makespan (P-1) T / 2; T of a full rank
/// Peak:     at most `most` stage activations
/// Requires: v = 2; most >= 2.
/// Source:   the greedy of ZB-V, arXiv 2401.10241, section 6; costs are those of each stage, not medians.
VRun schedule_v_rounds(const ScheduleRequest& request, int most);

}  // namespace vpp
