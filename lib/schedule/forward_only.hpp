#pragma once
// The schedule of evaluation: forwards only, any number of stages per rank.
#include "schedule/schedule.hpp"
#include "schedule/size.hpp"

namespace vpp {

/// On every rank, in groups of P microbatches, F of the group on each local stage ascending: the forward walk of
/// interleaved 1F1B. With v = 1 this is F of microbatches 0..M-1.
/// Bubble:   (P-1) T_F / v when P divides M; T of a full rank
/// Peak:     1: nothing is kept for a backward
/// Requires: a checked size.
/// Source:   the forwards of Megatron-LM, arXiv 2104.04473, section 2.2.
Schedule make_forward_only(const ScheduleSize& size);

/// The forwards of a schedule in their order: evaluation for a placement of any kind. Whatever the schedule could run,
/// its forwards can, since they wait for forwards only.
Schedule forwards_of(const Schedule& schedule);

}  // namespace vpp
