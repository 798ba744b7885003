#pragma once
// What a card has for the links of its rank, all of which may be under way at once. A kernel that moves a message stays
// on multiprocessors of the card until the other end has come. One that found no room, or stood in a queue behind
// another's, would wait for it, and the ranks at last for each other (NCCL's user guide, "Using multiple NCCL
// communicators concurrently").
#include <cstddef>
#include <vector>

#include "comm/links.hpp"

namespace vpp {

/// What a rank may have: a card keeps 32 streams apart at most (device/device.hpp), a few of them compute and copy, and
/// a link takes two: its own, and one of NCCL's in which a wait for every message stands (NCCL 2.28, ncclLaunchFinish).
inline constexpr size_t kMostLinks = 14;

/// Links of the rank that has most of them; one that is named twice counts once.
size_t most_links_of_a_rank(const std::vector<Link>& links);

/// Throws: Error{Plan} when a rank has more than kMostLinks; names it and what to do.
void check_links_fit(const std::vector<Link>& links);

/// Thread blocks, one a multiprocessor, by which a link may move a message, so that `num_links` of them take half of
/// the card at most and leave the other half for computing. A power of two from 1 to 32, what NCCL's channels are.
int blocks_of_a_link(int num_multiprocessors, size_t num_links);

}  // namespace vpp
