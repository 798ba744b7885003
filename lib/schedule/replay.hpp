#pragma once
// Runs a lowered schedule on paper: every rank does its list in order, a receive waits for its send.
// The checker asks whether it ends, the simulator when.
#include <cstdint>
#include <functional>
#include <vector>

#include "schedule/schedule.hpp"

namespace vpp {

enum class Sends {
    Buffered,    ///< a send never waits
    Rendezvous,  ///< a send waits until its receive is reached, and both are done at once
};

/// The message that a transfer is about: the same number for a SEND and its RECV, different for all others.
uint64_t message_key(const Action& transfer);

/// Calls `visit(rank, index)` for every action that can run, each after all that it waits for.
/// Gives how many actions of each list ran: the whole lists, or the place where a rank is stuck.
/// Requires: edges are not negative, microbatches are those of the schedule; for Rendezvous peers are ranks.
std::vector<size_t> replay(const Schedule& lowered, const std::function<void(int rank, size_t index)>& visit,
                           Sends sends = Sends::Buffered);

}  // namespace vpp
