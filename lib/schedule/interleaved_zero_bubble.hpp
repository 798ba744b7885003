#pragma once
// Interleaved zero bubble: the walk of interleaved 1F1B with backwards split into I and W, at the memory of 1F1B.
#include "schedule/request.hpp"
#include "schedule/schedule.hpp"

namespace vpp {

/// The walk of schedule/interleaving.hpp in groups of N = request.interleave_group microbatches.
/// On rank r: w = min((P-1-r) + (v-1)N, M v) forwards, one a hop instead of two; then for every step k: F(w+k) if any
/// is left, I(k), and the oldest pending W once k >= r; then the remaining W. v = 1 is ZB-H1.
///
/// Any v, any M and any N from P to M work.
/// Bubble:   (P-1) max(T_F, T_I, T_F + T_I - T_W) / v as makespan when M >= P and M mod N is 0 or at least P; the span
///           is the same while T_W <= T_I
/// Peak:     min((v-1)N + P, M v) stage activations on every rank, so P full activations for N = P; at most that for
///           other M (F takes one, W frees it)
/// Requires: a checked size.
/// Throws:   Error{Plan} for an N that cannot be.
/// Source:   InterleavedZeroBubble of torch.distributed.pipelining ("ZB1P"); the split of arXiv 2401.10241.
Schedule make_interleaved_zero_bubble(const ScheduleRequest& request);

}  // namespace vpp
