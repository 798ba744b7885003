#pragma once
// What a card has for the links of its rank, all of which may be under way at once. A kernel that moves a message stays
// on multiprocessors of the card until the other end has come. One that found no room, or stood in a queue behind
// another's, would wait for it, and the ranks at last for each other (NCCL's user guide, "Using multiple NCCL
// communicators concurrently").
#include <cstddef>
#include <string>
#include <vector>

#include "comm/links.hpp"

namespace vpp {

/// What a rank may have: a card keeps so many streams apart at most (device/device.hpp), and each link takes its own
/// and two that NCCL makes for it, in one of which a wait for every message stands (NCCL 2.28,
/// ncclStrongStreamConstruct and ncclLaunchFinish). The others compute, record, and are libraries' own.
inline constexpr size_t kCardQueues = 32, kOtherStreams = 4, kStreamsOfALink = 3;
inline constexpr size_t kMostLinks = (kCardQueues - kOtherStreams) / kStreamsOfALink;

/// Links of the rank that has most of them.
size_t most_links_of_a_rank(const std::vector<Link>& links);

/// Of links, the most important first, those that find room with all of their ranks. What goes between two ranks
/// without a link goes through the host (comm/link_transport.hpp).
std::vector<Link> links_with_room(const std::vector<Link>& wanted);

/// For people: which links found none. Empty where all did.
std::string no_room_text(const std::vector<Link>& wanted);

/// Thread blocks, one a multiprocessor, by which a link may move a message, so that `num_links` of them take half of
/// the card at most and leave the other half for computing. A power of two from 1 to 32, what NCCL's channels are.
int blocks_of_a_link(int num_multiprocessors, size_t num_links);

}  // namespace vpp
