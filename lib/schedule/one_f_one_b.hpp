#pragma once
// 1F1B: after a warm-up each rank alternates one forward and one backward, so few microbatches are in flight.
#include "schedule/schedule.hpp"
#include "schedule/size.hpp"

namespace vpp {

/// On rank r: w = min(P-1-r, M) forwards; M - w times [F, B]; the remaining w backwards. M < P works.
/// Bubble:   (P-1)(T_F + T_B), that of GPipe
/// Peak:     min(P-r, M) stage activations on rank r
/// Requires: a checked size.
/// Throws:   Error{Plan} when v is not 1.
/// Source:   PipeDream-flush, arXiv 2006.09503; DAPPLE, arXiv 2007.01045.
Schedule make_one_f_one_b(const ScheduleSize& size);

}  // namespace vpp
