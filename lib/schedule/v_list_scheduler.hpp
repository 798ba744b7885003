#pragma once
// List scheduling over two stages per rank in v placement: time runs, and whenever a rank is free, rules decide what it
// does next among what has arrived and fits into its memory. The generators of the family differ in the wishes that
// they bring (VBlock) and in the rules that they try; the smallest result is kept.
//
// The way of one microbatch is a chain of 4P hops over the ranks (P = 3):
//   hop    0  1  2 | 3  4  5 | 6  7  8 | 9 10 11
//   rank   0  1  2 | 2  1  0 | 0  1  2 | 2  1  0
//          F down  | F up    | I up    | I down      (legs of the stages: Ia, the last, belongs to the leg down)
// and W follows each I on its rank.
#include <vector>

#include "schedule/request.hpp"
#include "schedule/schedule.hpp"

namespace vpp {

/// Wishes: what a rank does first when it could do several things: the action of hop h of microbatch i with the
/// smallest starts[h] + period i. Building blocks that repeat every `period` slots are such wishes.
struct VBlock {
    std::vector<Ticks> starts;  ///< 4P hops
    Ticks period = 6;
};

struct VRules {
    /// What goes first, F or I, when both could start. Between the legs the block decides.
    enum class First { Block, InputGradient, Forward, Alternate };

    First first = First::Block;
    bool forwards_in_order = false;  ///< F only in the order of the block
    bool all_in_order = false;       ///< F and I only in the order of the block
    bool weights_before_forwards = false;
    bool weights_wait = false;  ///< no W in a wait that is known to be too short for it
};

/// What came of it.
struct VRun {
    ActionLists actions;
    Ticks makespan = 0;
    Ticks span = 0;
    bool ended = false;          ///< false: the order of the block does not fit into the memory
    bool weights_delay = false;  ///< some W was longer than the wait that it filled: weights_wait makes a difference

    /// Shorter in time, then in span.
    bool operator<(const VRun& other) const;
};

/// What the result of each of the 4P hops takes to the rank of the next one: 0 where that is the same.
std::vector<Ticks> transfers_of_hops(const ScheduleCosts& costs, int num_ranks);

/// Runs M microbatches under costs of stages and transfers.
///
/// `most` stage activations at once on a rank; without an order in the rules the leg down may take most - (what the
/// block keeps on the leg up, at least 1). That always ends, since the oldest microbatch can go on: its F down finds
/// the rank empty; its F up finds microbatches on the leg down only, which leave a place; I and W need no memory.
/// Requires: v = 2; most >= 2; a block of 4P hops.
VRun schedule_v_list(const ScheduleRequest& request, int most, const VBlock& block, const VRules& rules);

/// The smallest of the runs under each of the rules, with and without weights_wait where it matters; `ended` is false
/// when none ended.
VRun schedule_v_best(const ScheduleRequest& request, int most, const VBlock& block, const std::vector<VRules>& rules);

/// The rules under which a building block is tried.
const std::vector<VRules>& building_block_rules();

/// The most stage activations that the block, repeated, keeps at once on a rank: the sum over its stages of
/// ceil(lifespan / period), with W right behind I.
int block_peak(const VBlock& block, int num_ranks);

}  // namespace vpp
