#pragma once
// Interleaved 1F1B: every rank holds v stages (loop placement), which divides the bubble by v.
#include "schedule/request.hpp"
#include "schedule/schedule.hpp"

namespace vpp {

/// The walk of schedule/interleaving.hpp in groups of N = request.interleave_group microbatches.
/// On rank r: w = min(2(P-1-r) + (v-1)N, M v) forwards; then [F(w+k), B(k)]; then the remaining backwards.
///
/// Any M and any N from P to M work; PyTorch's order is N = M / max(1, M div P), Megatron's default N = P.
/// Bubble:   (P-1)(T_F + T_B) / v as makespan and as span when M mod N is 0 or at least P; T of a full rank
/// Peak:     min(w + 1, M v) stage activations on rank r, at most that for other M
/// Requires: a checked size.
/// Throws:   Error{Plan} when v < 2, or for an N that cannot be.
/// Source:   Megatron-LM, arXiv 2104.04473, section 2.2.
Schedule make_interleaved_1f1b(const ScheduleRequest& request);

}  // namespace vpp
