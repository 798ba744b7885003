#pragma once
// A simulated step as a trace for chrome://tracing and ui.perfetto.dev.
#include <string>

#include "schedule/simulator.hpp"

namespace vpp {

/// JSON of the Trace Event Format: a thread a rank, an event an action that takes time ("0F1", category F, with stage
/// and microbatch), an arrow a message. One unit of the costs is shown as a millisecond. The second half of an
/// OVERLAP_F_B is on a thread of its own ("rank 0, overlapped"), since events of one thread must nest.
/// Source:   "Trace Event Format", Google, 2016.
/// Requires: as simulate.
std::string write_trace(const Schedule& lowered, const ScheduleCosts& costs = {});

}  // namespace vpp
