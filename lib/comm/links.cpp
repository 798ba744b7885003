#include "comm/links.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace vpp {

std::optional<Link> link_of(int from, int to, const Channel& channel) {
    if (channel.direction == Direction::Control) return std::nullopt;
    const bool is_of_replicas = channel.direction == Direction::Replicas;
    return Link{from, to, channel.direction, is_of_replicas ? channel.microbatch : 0};
}

std::vector<Link> connect_order(std::vector<Link> links) {
    std::sort(links.begin(), links.end());
    links.erase(std::unique(links.begin(), links.end()), links.end());
    std::map<int, std::set<size_t>> taken;  // the rounds of each rank
    std::vector<std::pair<size_t, Link>> rounds;
    for (const Link& link : links) {
        size_t round = 0;
        while (taken[link.from].contains(round) || taken[link.to].contains(round)) ++round;
        taken[link.from].insert(round);
        taken[link.to].insert(round);
        rounds.emplace_back(round, link);
    }
    std::stable_sort(rounds.begin(), rounds.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Link> order;
    for (const auto& [round, link] : rounds) order.push_back(link);
    return order;
}

}  // namespace vpp
