#pragma once
// ZB-V: two stages per rank in v placement, the backward split; no bubble inside the span at the memory of 1F1B.
#include "schedule/request.hpp"
#include "schedule/schedule.hpp"

namespace vpp {

/// The fixed form. Letters: a and b are the rank's stages on the way down and up. On rank r, planned for
/// M' = max(M, 2P-1) microbatches:
/// 1. 2(P-r)-1 Fa   2. r times [Fb, Fa]   3. P-r times [Fb, Ib, Wb]
/// 4. until all Fb are done: [Fa if one is left, Ia, Wa, Fb, Ib, Wb]
/// 5. r times [Ia, Ib]   6. P-r times [Ia, Wa]   7. the remaining Wb, then Wa
/// Microbatches from M on are left out: microbatches depend only on themselves, so what stays can always run.
/// Bubble:   at T_F = T_I = T_W = T, M >= 2P-1: span 0, makespan (P-1) T / 2; T of a full rank
/// Peak:     P microbatches (2 P stage activations) on every rank at any costs when M >= 2P-1, else at most min(P, M)
/// Requires: a checked size.
/// Throws:   Error{Plan} when v is not 2.
/// Source:   ZB-V, arXiv 2401.10241, section 6, as planned by torch.distributed.pipelining's ScheduleZBVZeroBubble.
Schedule make_zero_bubble_v_fixed(const ScheduleSize& size);

/// ZB-V: without memory_limit the fixed form. With one, the narrowest span, then the shortest makespan, that the search
/// of v_search.hpp finds over 2^21 actions at the request's costs; the paper's greedy (v_rounds.hpp) and the fixed form
/// are among those tried where they fit.
/// Peak:     at most memory_limit microbatches at any costs
/// Bubble:   the span is at most the fixed form's when memory_limit >= P, at equal times 0 when M >= 2P-1
/// Requires: a checked size.
/// Throws:   Error{Plan} when v is not 2 or memory_limit is below 1: a microbatch is on both stages of a rank at once.
/// Source:   arXiv 2401.10241, section 6; below P microbatches the lists are vpp's own.
Schedule make_zero_bubble_v(const ScheduleRequest& request);

}  // namespace vpp
