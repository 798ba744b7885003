#pragma once
// How long a message stays in its sender's memory.
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "schedule/schedule.hpp"

namespace vpp {

/// Where messages lie before they are received and after they are sent.
struct MessageBuffers {
    /// So many of a rank's next receives have their buffers before their RECV.
    int receives_ahead = 0;
    /// So many messages of a link (channel_number) may stay though they are known to be taken. None: no message stays.
    std::optional<int> sends_behind{};
};

/// What every rank holds of messages that it has sent, during each of its actions, in the worst case of timing. The
/// other rank has taken a message when it has its buffer there: at its RECV, or receives_ahead receives before. The
/// sender knows that from the next message of that rank, and lets go of it with the transfer behind that.
/// Requires: a schedule that check_schedule has proved; sends_behind.
std::vector<std::vector<int64_t>> held_sends(const Schedule& lowered, const MessageBuffers& buffers,
                                             const std::function<int64_t(int edge)>& bytes_of_edge);

}  // namespace vpp
