#pragma once
// V-Half and V-Min: two stages per rank in v placement at about a half and a third of 1F1B's memory.
#include "schedule/request.hpp"
#include "schedule/schedule.hpp"
#include "schedule/v_list_scheduler.hpp"

namespace vpp {

/// The building blocks: start slots of Fa, Fb, Ib, Ia on rank r; they repeat every 6 slots without a collision.
///   V-Half  2r ; 3P-2-r ; 3P-1+t+2r ; 6P-2+t-r   t = 3 if 2 divides P, else 0
///   V-Min   r ; 2P-1-r ; 2P+t+r ; 4P+t-1-r       t = 2 if 3 divides P, else 0
VBlock v_half_block(int num_ranks);
VBlock v_min_block(int num_ranks);

/// V-Half: the list scheduler (v_list_scheduler.hpp) over the block at the request's costs. Where the paper repeats the
/// block, moves its ends together and squeezes out the waits, the block is a wish here and time decides; the result is
/// kept that is shortest.
/// Peak:     (P+2) div 2 microbatches, twice that in stage activations, at any costs
/// Bubble:   at T_F = T_I = T_W = T, M >= P: makespan at most (3P-4) T / 2 with odd P, (3P-3) T / 2 with even P;
///           none in the steady state when T_W + 2 T_I >= 2 T_F and T_W + 2 T_F >= 2 T_I; T of a full rank
/// Requires: a checked size. memory_limit is not looked at.
/// Throws:   Error{Plan} when v is not 2.
/// Source:   Pipeline Parallelism with Controllable Memory, arXiv 2405.15362.
Schedule make_v_half(const ScheduleRequest& request);

/// V-Min, likewise.
/// Peak:     (P+4) div 3 microbatches
/// Bubble:   at equal times, P >= 2, M >= P: makespan (4P-5) T / 2. At other times a bubble for every microbatch.
Schedule make_v_min(const ScheduleRequest& request);

}  // namespace vpp
