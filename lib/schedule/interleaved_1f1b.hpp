#pragma once
// Interleaved 1F1B: every rank holds v stages (loop placement), which divides the bubble by v.
#include "schedule/schedule.hpp"
#include "schedule/size.hpp"

namespace vpp {

/// Microbatches go in groups of P. Within a group a rank walks its stages 0..v-1 and, for each, all microbatches of the
/// group: the k-th forward. The k-th backward is the same walk with the stages from last to first.
/// On rank r: w = min(2(P-1-r) + (v-1)P, M v) forwards; then [F(w+k), B(k)]; then the remaining backwards.
///
/// Any M works. When P does not divide M the schedule is made for the next multiple of P and the microbatches from M on
/// are left out: microbatches depend only on themselves, so what stays can always run. (A shorter last group, the
/// obvious way, deadlocks: rank 0 waits for a forward that stands behind a backward that waits for rank 0. Over P <= 8,
/// v = 2..4, M <= 40 it does so in 212 of 960 cases and is never faster in the others.)
/// Bubble:   (P-1)(T_F + T_B) / v when P divides M; T of a full rank
/// Peak:     min(w + 1, M v) stage activations on rank r, at most that when P does not divide M
/// Requires: a checked size.
/// Throws:   Error{Plan} when v < 2.
/// Source:   Megatron-LM, arXiv 2104.04473, section 2.2.
Schedule make_interleaved_1f1b(const ScheduleSize& size);

}  // namespace vpp
