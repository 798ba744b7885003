#pragma once
// Runs a lowered schedule on paper: every rank does its list in order, sends never block, a receive waits for its send.
// The checker asks whether it ends, the simulator when.
#include <cstdint>
#include <functional>
#include <vector>

#include "schedule/schedule.hpp"

namespace vpp {

/// The message that a transfer is about: the same number for a SEND and its RECV, different for all others.
uint64_t message_key(const Action& transfer);

/// Calls `visit(rank, index)` for every action that can run, each after all that it waits for.
/// Gives how many actions of each list ran: the whole lists, or the place where a rank is stuck.
/// Requires: edges and microbatches are not negative.
std::vector<size_t> replay(const Schedule& lowered, const std::function<void(int rank, size_t index)>& visit);

}  // namespace vpp
