#include "comm/links.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace vpp {

Link link_of(const std::vector<int>& replicas, const Channel& channel) {
    return {replicas, true, channel.microbatch % kLinksOfReplicas};
}

std::vector<Link> connect_order(std::vector<Link> links) {
    std::sort(links.begin(), links.end());
    std::map<int, std::set<size_t>> taken;  // the rounds of each rank
    std::vector<std::pair<size_t, Link>> rounds;
    for (const Link& link : links) {
        const auto is_taken = [&](size_t round) {
            return std::any_of(link.ranks.begin(), link.ranks.end(),
                               [&](int rank) { return taken[rank].contains(round); });
        };
        size_t round = 0;
        while (is_taken(round)) ++round;
        for (int rank : link.ranks) taken[rank].insert(round);
        rounds.emplace_back(round, link);
    }
    std::stable_sort(rounds.begin(), rounds.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Link> order;
    for (const auto& [round, link] : rounds) order.push_back(link);
    return order;
}

}  // namespace vpp
