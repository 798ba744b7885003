#pragma once
// Gradient accumulation: a step of several pipeline runs, one behind the other.
#include "schedule/schedule.hpp"

namespace vpp {

/// A schedule of `runs` x M microbatches: on every rank the actions of the schedule `runs` times, run k with the
/// microbatches k M to (k + 1) M - 1. Ranks do not wait for each other between two runs. REDUCE_GRAD stays in the last
/// run alone.
/// Peak:     that of one run
/// Bubble:   up to `runs` times that of one run
/// Requires: runs >= 1.
Schedule repeat_runs(const Schedule& run, int runs);

}  // namespace vpp
