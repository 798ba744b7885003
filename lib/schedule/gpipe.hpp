#pragma once
// GPipe: all forwards, then all backwards.
#include "schedule/schedule.hpp"
#include "schedule/size.hpp"

namespace vpp {

/// On every rank F of microbatches 0..M-1, then B of 0..M-1.
/// Ascending backwards are one of the two orders in use: vpp adds gradients in microbatch order, so the descending one
/// would hold every result back until microbatch 0 is done.
/// Bubble:   (P-1)(T_F + T_B)
/// Peak:     M stage activations on every rank
/// Requires: a checked size.
/// Throws:   Error{Plan} when v is not 1.
/// Source:   GPipe, arXiv 1811.06965.
Schedule make_gpipe(const ScheduleSize& size);

}  // namespace vpp
