#pragma once
// Eager 1F1B: 1F1B with twice the warm-up, so that a transfer has a whole pair of actions to hide behind.
#include "schedule/schedule.hpp"
#include "schedule/size.hpp"

namespace vpp {

/// On rank r: w = min(2(P-1-r), M) forwards; M - w times [F, B]; the remaining w backwards. M < P works.
/// Bubble:   (P-1)(T_F + T_B), that of 1F1B, as makespan and as span
/// Peak:     min(2(P-1-r) + 1, M) stage activations on rank r
/// Transfers of c on every hop add exactly 2(P-1)c while 2c <= T_F + T_B.
/// Requires: a checked size.
/// Throws:   Error{Plan} when v is not 1.
/// Source:   On optimizing the communication of model parallelism, arXiv 2211.05322; it is what the warm-up of
///           interleaved 1F1B (arXiv 2104.04473, section 2.2) gives at v = 1.
Schedule make_eager_1f1b(const ScheduleSize& size);

}  // namespace vpp
