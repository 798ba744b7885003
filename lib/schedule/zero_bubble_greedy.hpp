#pragma once
// Greedy zero bubble, linear placement: I first, W where a rank would wait or needs its memory; costs of every stage.
#include "schedule/request.hpp"
#include "schedule/schedule.hpp"

namespace vpp {

/// At memory limit P this is the papers' "ZB-1p", at 2P "ZB-2p". One pass of the greedy:
/// 1. F(0) everywhere; then, from the last stage to the first, as many more warm-up F as fit before the first gradient
///    can arrive and under the limit (flag `late_warmup`: the last one may end after the arrival); trimmed so that the
///    counts strictly decrease along the pipe.
/// 2. Rounds of at most one F a stage, first to last, then one I a stage, last to first. A stage takes no F in a round
///    when it would not fit under the limit, when the next stage takes none, or (flag `prefer_input_gradient`) when it
///    is two forwards ahead of the next stage and going straight to I makes it no worse than the worst rank.
///    Before each F and I: W until it fits under the limit; W as long as a whole one fits into the wait; one more W
///    when the rest of the wait would make this rank the worst one, or (flag `fill_always`) in any case.
/// 3. The W that are left.
/// The eight combinations of flags are tried, and a plain list in time (I before F before W, whatever can start first),
/// which is the better one below the limit P (P = 8, M = 64, costs of the paper, span bubble: limit 6 .60 by rounds,
/// .26 by the list). The smallest span wins, then the smallest makespan.
///
/// Peak:     at most `memory_limit` (default P) activations on every rank, I freeing what `request.activation` says.
///           The published ZB-2p bubbles need that part: in the first model .366 of an activation wait for W. If all of
///           it does, no linear order within 2P has a span bubble below .0415 there, where .0026 is published: rank P-1
///           starts (P-1)(T_F+c) after rank 0, can leave at most 2P W behind its last I, and rank 0 ends
///           (P-1)(T_I+c) + T_W after that.
/// Requires: a checked size.
/// Throws:   Error{Plan} when v is not 1 or the limit is below 1, the least with which a rank can work at all.
/// Source:   Qi et al., Zero Bubble Pipeline Parallelism, arXiv 2401.10241, section 3.1; each stage has its own costs
///           here, where the authors take medians.
Schedule make_zero_bubble_greedy(const ScheduleRequest& request);

}  // namespace vpp
