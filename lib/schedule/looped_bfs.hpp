#pragma once
// Looped BFS: every rank takes its stages one after the other, each for all microbatches (breadth first).
#include "schedule/schedule.hpp"
#include "schedule/size.hpp"

namespace vpp {

/// On every rank: for its stages ascending F of microbatches 0..M-1; then for its stages descending B of 0..M-1.
/// v = 1 is GPipe. Backwards are ascending, as in every schedule made here: vpp adds gradients in microbatch order, so
/// the descending order of other systems would hold every result back until microbatch 0 is done.
/// Its point is data parallelism: a stage's weights are gathered and its gradients reduced once a step.
/// Bubble:   (P-1)(T_F + T_B) / v as makespan and as span when M >= P; with v = 1 for any M
/// Peak:     M v stage activations on every rank
/// Transfers of c on every hop add exactly 2(P-1)c when v = 1 or (M-P) min(T_F, T_B) / v >= P c: then a rank is still
/// at work on one stage when the first microbatch comes back for the next.
/// M < P works, at dependency bubbles when v > 1.
/// Requires: a checked size.
/// Source:   Breadth-first pipeline parallelism, arXiv 2211.05953.
Schedule make_looped_bfs(const ScheduleSize& size);

}  // namespace vpp
