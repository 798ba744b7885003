#pragma once
// Long schedules from short ones: the middle of a schedule, repeated. A search looks through the orders of some dozens
// of microbatches; hundreds of them would take as many times the moves.
#include <array>
#include <vector>

#include "schedule/costs.hpp"
#include "schedule/schedule.hpp"

namespace vpp {

/// What is repeated: on every rank the actions of `period` microbatches, in their order. They need not stand side by
/// side: the block begins where each stage has done so many F, so many I or B, and so many W or B.
struct SteadyBlock {
    int period = 1;
    std::vector<std::array<int, 3>> done;  ///< by stage
};

/// Blocks that begin when stage 0 begins a microbatch, in a run at `costs`, with every period that makes the schedule
/// `more` microbatches longer if it is repeated a whole number of times, up to half of its microbatches. None where a
/// stage has B as well as I and W.
/// Requires: computing actions that check_schedule would prove for a model without skips, microbatches of a stage and
///           kind ascending, without pairs.
std::vector<SteadyBlock> find_steady_blocks(const Schedule& shorter, int more, const ScheduleCosts& costs);

/// The schedule with the block `times` more times, each time with the next microbatches. It ends whenever the given one
/// does: what comes before the block, the block, and what is left of the schedule behind it each have all that they
/// wait for, in the order of the given schedule's run. It may hold more: a rank's block takes back what the rest did
/// before its end (peak_in_flight).
/// Requires: a block of find_steady_blocks.
Schedule lengthen(const Schedule& shorter, const SteadyBlock& block, int times);

}  // namespace vpp
