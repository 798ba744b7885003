#include "comm/link_room.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "base/error.hpp"

namespace vpp {

namespace {

std::map<int, size_t> links_by_rank(const std::vector<Link>& links) {
    std::map<int, size_t> counts;
    for (const Link& link : std::set<Link>(links.begin(), links.end())) {
        for (int rank : link.ranks) ++counts[rank];
    }
    return counts;
}

}  // namespace

size_t most_links_of_a_rank(const std::vector<Link>& links) {
    size_t most = 0;
    for (const auto& [rank, count] : links_by_rank(links)) most = std::max(most, count);
    return most;
}

void check_links_fit(const std::vector<Link>& links) {
    for (const auto& [rank, count] : links_by_rank(links)) {
        if (count <= kMostLinks) continue;
        throw Error(ErrorKind::Plan,
                    "rank " + std::to_string(rank) + " would have " + std::to_string(count) +
                        " links to other cards by NCCL, and a card keeps " + std::to_string(kMostLinks) +
                        " apart: beyond that ranks could wait for each other; set mesh.transport = \"mpi\", or cut "
                        "into stages that send to fewer others");
    }
}

int blocks_of_a_link(int num_multiprocessors, size_t num_links) {
    constexpr unsigned kMost = 32;
    const auto share = static_cast<unsigned>(std::max(0, num_multiprocessors)) / 2 /
                       static_cast<unsigned>(std::max<size_t>(1, num_links));
    return static_cast<int>(std::bit_floor(std::clamp(share, 1U, kMost)));
}

}  // namespace vpp
