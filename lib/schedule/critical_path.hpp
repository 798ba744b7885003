#pragma once
// The critical path: why a step takes as long as it does. Every action on it, made shorter, lets the next one start
// earlier; the path ends with the last action of the schedule.
#include <vector>

#include "schedule/simulator.hpp"

namespace vpp {

/// One action of the path: a computing action, or a SEND whose message its receiver waits for.
struct CriticalStep {
    int rank = 0;
    size_t index = 0;  ///< into the rank's list
    /// What it adds: its own, that of the pair it begins, of the transfer, or for a message that only keeps the channel
    /// from the next one the time in which it does.
    Ticks time = 0;
};

/// From time 0 on; the times add up to the makespan. Of several longest paths the one that stays on its rank, and that
/// ends on the smallest rank. Of a pair the first half stands for both.
/// Requires: `simulation` is that of `lowered` at `costs`.
std::vector<CriticalStep> critical_path(const Schedule& lowered, const Simulation& simulation,
                                        const ScheduleCosts& costs = {});

/// What the path's times are made of; together the makespan.
struct CriticalTimes {
    std::vector<Ticks> of_stage;  ///< by stage: what it computes
    Ticks of_messages = 0;        ///< what ranks wait for
};

CriticalTimes critical_times(const Schedule& lowered, const std::vector<CriticalStep>& path);

}  // namespace vpp
