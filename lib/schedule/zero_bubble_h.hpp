#pragma once
// The handcrafted zero-bubble schedules on the linear placement: backwards are split into I and W, and W, for which
// no other rank waits, fills what would be bubbles.
#include "schedule/schedule.hpp"
#include "schedule/size.hpp"

namespace vpp {

/// ZB-H1. On rank r: w = min(P-1-r, M) forwards; for i = 0..M-1: the next F if any is left, I(i), and the oldest
/// pending W once i >= r; then the remaining W. All kinds ascend. M < P works.
/// Bubble:   (P-1) max(T_F, T_I, T_F + T_I - T_W) as makespan when M >= P; the span is the same while T_W <= T_I
/// Peak:     min(P, M) activations on every rank (F takes one, W frees it)
/// Transfers of c on every hop add exactly 4(P-1)c while T_W <= min(T_F, T_I), 2c <= T_W and M >= 2P.
/// Requires: a checked size.
/// Throws:   Error{Plan} when v is not 1.
/// Source:   Zero bubble pipeline parallelism, arXiv 2401.10241, section 2. Its form of the bubble,
///           (P-1)(T_F + T_I - T_W), is the case T_W <= min(T_F, T_I).
Schedule make_zero_bubble_h1(const ScheduleSize& size);

/// ZB-H2: as H1 with w = 2(P-1-r), and W once i >= 2r. Twice the memory; no bubble at equal times if steps follow one
/// another without a barrier (span).
/// Bubble:   span (P-1) max(0, T_F + T_I - 2 T_W, T_I - T_F); makespan (P-1) max(T_F, T_F + T_I - 2 T_W, T_I - T_F)
/// Peak:     2P-1 activations on every rank
/// Transfers of c on every hop add exactly 2(P-1)c to the span while 2 T_W <= T_F + T_I and 2c <= T_W.
/// Requires: a checked size.
/// Throws:   Error{Plan} when v is not 1 or M < 2P-1: with fewer microbatches the warm-up is not full.
/// Source:   as H1.
Schedule make_zero_bubble_h2(const ScheduleSize& size);

}  // namespace vpp
