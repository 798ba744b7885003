#pragma once
// Why the lists of a lowered schedule cannot run to their ends, in words.
#include <string>

#include "schedule/replay.hpp"
#include "schedule/schedule.hpp"

namespace vpp {

/// The circle of ranks that wait for each other: "it never ends: rank 0 waits at X (action 4 of 12) for Y of rank 1
/// ..."; empty when the lists run to their ends. Requires: messages that match, as check_schedule proves before.
std::string deadlock_text(const Schedule& lowered, Sends sends);

/// The first channel (from rank, to rank, value or gradient) whose messages are received in another order than they are
/// sent; empty when there is none. Then channels that keep the order (NCCL) carry what tagged ones (MPI) do.
/// Requires: messages that match, as check_schedule proves before.
std::string crossing_text(const Schedule& lowered);

}  // namespace vpp
