#include "comm/links.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace vpp {
namespace {

/// The most links that a rank has, and the rounds that follow from an order: a link comes one behind the latest of the
/// last links of its ranks.
std::pair<int, int> degree_and_rounds(const std::vector<Link>& order) {
    std::map<int, int> degree, round;
    int most = 0, rounds = 0;
    for (const Link& link : order) {
        int last = 0;
        for (int rank : link.ranks) {
            most = std::max(most, ++degree[rank]);
            last = std::max(last, round[rank]);
        }
        for (int rank : link.ranks) round[rank] = last + 1;
        rounds = std::max(rounds, last + 1);
    }
    return {most, rounds};
}

std::vector<Link> chain(int num_ranks) {
    std::vector<Link> links;
    for (int rank = 0; rank + 1 < num_ranks; ++rank) {
        links.push_back({{rank, rank + 1}});
        links.push_back({{rank + 1, rank}});
    }
    return links;
}

TEST(LinkOf, ContentsOfReplicasHaveTwoByTurns) {
    EXPECT_EQ(link_of({3, 7}, {4, 2, Direction::Replicas}), (Link{{3, 7}, true, 0}));
    EXPECT_EQ(link_of({3, 7}, {5, 2, Direction::Replicas}), (Link{{3, 7}, true, 0}));
    EXPECT_EQ(link_of({3, 7}, {4, 3, Direction::Replicas}), (Link{{3, 7}, true, 1})) << "by turns";
    EXPECT_NE(link_of({3, 7}, {4, 1, Direction::Replicas}), link_of({3, 7}, {4, 2, Direction::Replicas}));
}

TEST(ConnectOrder, AChainConnectsInAsManyRoundsAsARankHasLinks) {
    const auto [degree, rounds] = degree_and_rounds(connect_order(chain(1000)));
    EXPECT_EQ(degree, 4);
    EXPECT_EQ(rounds, 4) << "one behind the other would be 1998";
}

TEST(ConnectOrder, GroupsConnectBesideEachOther) {
    std::vector<Link> links;
    for (int stage = 0; stage < 4; ++stage) {
        std::vector<int> replicas;
        for (int replica = 0; replica < 128; ++replica) replicas.push_back(4 * replica + stage);
        for (int content = 0; content < 3; ++content) links.push_back({replicas, true, content});
    }
    const auto [degree, rounds] = degree_and_rounds(connect_order(links));
    EXPECT_EQ(degree, 3) << "however many replicas there are";
    EXPECT_EQ(rounds, 3);
}

TEST(ConnectOrder, HasEveryLinkOnceWhateverTheOrderOfTheAsking) {
    std::vector<Link> links = chain(5);
    const std::vector<Link> order = connect_order(links);
    std::reverse(links.begin(), links.end());
    EXPECT_EQ(connect_order(links), order);
    EXPECT_EQ(order.size(), 8U);
    EXPECT_EQ(std::set<Link>(order.begin(), order.end()).size(), 8U);
}

}  // namespace
}  // namespace vpp
