#pragma once
// A measured step as a trace for ui.perfetto.dev and chrome://tracing.
#include <string>

#include "schedule/measured_step.hpp"

namespace vpp {

/// JSON of the Trace Event Format. A rank is a process, each of its stages a thread, with an event for every action:
/// F, B, I, W, and what messages take it ("RECV_F 3", with the wait as an argument); one more thread has the parts of
/// the step (actions, exchange, update), and of a rank that waits for data one shows when ("data"). Where a card's
/// times are known it has threads too: one for what it computes, and one for each kind of message to or from each rank.
/// An arrow leads from every SEND to its RECV. Microseconds from the begin of the step on rank 0's clock; "otherData"
/// has the step, the schedule and what the clocks of the ranks may be apart. Where clocks are wrong by more than a
/// message took, its arrow leads back in time; nothing is moved to hide that. Source: "Trace Event Format", Google,
/// 2016. Requires: as write_timeline.
std::string write_measured_trace(const Schedule& lowered, const MeasuredStep& step);

}  // namespace vpp
