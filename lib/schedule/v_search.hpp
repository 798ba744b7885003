#pragma once
// The best schedule in v placement with two stages per rank that a counted number of list schedules finds under a
// memory limit: the greedy of ZERO_BUBBLE_V and of V_ADAPTIVE.
#include "schedule/request.hpp"
#include "schedule/v_list_scheduler.hpp"

namespace vpp {

enum class VGoal { Makespan, Span };  ///< the other one decides between equals

/// What the search may use.
struct VSearch {
    int most = 2;  ///< stage activations at once on a rank
    VGoal goal = VGoal::Makespan;
    int64_t most_actions = int64_t{1} << 21;  ///< that are tried in all; what is begun is ended
};

/// Building blocks whose hops take k, 1, k, 1 slots (on the ways F down, F up, I down, I up), k from 1 to 5, first k1
/// for K hops, then k2 <= k1; in which rank 0 starts Fa at slot 0 and Fb, Ib, Ia in three different ones of 1 to 5
/// modulo 6; and that repeat every 6 slots without a collision. Where P is large, 16 values of K.
/// Their memory goes from a third of 1F1B's (k = 1) over a half (k = 2) to all of it (k = 5).
/// Source: the adaptive scheduler of arXiv 2405.15362.
std::vector<VBlock> hop_blocks(int num_ranks);

/// Tries ZB-V's greedy (v_rounds.hpp), its fixed form where it fits, list schedules over hop_blocks, those first whose
/// memory is nearest to the limit, and list schedules without a block, that let a free rank take an F on the way up
/// before one on the way down. Always finds one, since lists without an order end; stops early where no schedule can be
/// shorter. The same on every machine.
/// Requires: v = 2; most >= 2.
VRun search_v(const ScheduleRequest& request, const VSearch& search);

/// The request's memory limit in stage activations, default P microbatches.
/// Throws: Error{Plan} when it is below 1: a microbatch is on both stages of a rank at once.
int v_memory_limit(const ScheduleRequest& request, const char* name);

}  // namespace vpp
