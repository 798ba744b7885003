#include "comm/link_room.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "base/few.hpp"

namespace vpp {

size_t most_links_of_a_rank(const std::vector<Link>& links) {
    std::map<int, size_t> counts;
    size_t most = 0;
    for (const Link& link : links) {
        for (int rank : link.ranks) most = std::max(most, ++counts[rank]);
    }
    return most;
}

std::vector<Link> links_with_room(const std::vector<Link>& wanted) {
    std::map<int, size_t> counts;
    std::vector<Link> links;
    for (const Link& link : wanted) {
        const auto has_room = [&](int rank) { return counts[rank] < kMostLinks; };
        if (!std::ranges::all_of(link.ranks, has_room)) continue;
        for (int rank : link.ranks) ++counts[rank];
        links.push_back(link);
    }
    return links;
}

std::string no_room_text(const std::vector<Link>& wanted) {
    constexpr size_t kMostNamed = 4;
    const std::vector<Link> found = links_with_room(wanted);
    std::set<Link> others(wanted.begin(), wanted.end());
    for (const Link& link : found) others.erase(link);
    if (others.empty()) return "";
    std::vector<std::string> names;
    for (const Link& link : others) {
        names.push_back(std::to_string(link.ranks[0]) + " to " + std::to_string(link.ranks[1]));
    }
    return "a card keeps " + std::to_string(kMostLinks) + " links by NCCL apart, so what goes from rank " +
           few_text(names, kMostNamed) +
           " goes through the host, which is slower; stages that send to fewer others would need fewer";
}

int blocks_of_a_link(int num_multiprocessors, size_t num_links) {
    constexpr unsigned kMost = 32;
    const auto share = static_cast<unsigned>(std::max(0, num_multiprocessors)) / 2 /
                       static_cast<unsigned>(std::max<size_t>(1, num_links));
    return static_cast<int>(std::bit_floor(std::clamp(share, 1U, kMost)));
}

}  // namespace vpp
