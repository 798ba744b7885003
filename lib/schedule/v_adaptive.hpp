#pragma once
// V-Adaptive: two stages per rank in v placement at any memory limit, the shortest of many building blocks.
#include "schedule/request.hpp"
#include "schedule/schedule.hpp"

namespace vpp {

/// The search over building blocks of v_search.hpp for the smallest makespan at the request's costs, over 2^23 actions;
/// V-Half, V-Min and ZB-V are tried too where they fit, so it is never longer than they are.
/// Peak:     at most memory_limit microbatches at any costs; default P, that of 1F1B
/// Bubble:   at equal times no schedule with k stage activations ends before 6M + 6P - 3k - 1 slots or 6M + P - 1
/// Requires: a checked size.
/// Throws:   Error{Plan} when v is not 2 or memory_limit is below 1.
/// Source:   the adaptive scheduler of Pipeline Parallelism with Controllable Memory, arXiv 2405.15362.
Schedule make_v_adaptive(const ScheduleRequest& request);

}  // namespace vpp
