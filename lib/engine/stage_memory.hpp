#pragma once
// Measured memory against the schedule's theory: what the actions of a step took is fed to the simulator
// (schedule/memory.hpp), whose peaks are held against the ranks' own.
#include <vector>

#include "comm/transport.hpp"
#include "engine/executor.hpp"
#include "program/program.hpp"
#include "report/event.hpp"
#include "schedule/memory.hpp"

namespace vpp {

/// What a stage takes, as this run shows it.
/// Requires: `memory` beside the rank's actions; `stage` is one of the rank's.
StageMemory measure_stage(const Phase& phase, int pp_rank, int stage, const std::vector<ActionMemory>& memory);

/// Of the last step.  Calls: collective.
/// Gives: on rank 0 the ranks' figures by transport rank; nothing elsewhere. `step` is left open. `simulated` is the
/// schedule whose peaks are simulated: that of the program, or another one of its stages.
MemoryEvent measure_memory(Transport& transport, const Program& program, const Executor& executor,
                           const Schedule& simulated);

}  // namespace vpp
