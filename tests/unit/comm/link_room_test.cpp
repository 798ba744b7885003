#include "comm/link_room.hpp"

#include <gtest/gtest.h>

#include "device/device.hpp"

namespace vpp {
namespace {

/// Rank 0 sends to each of so many others, and gets something back from the first.
std::vector<Link> fan(size_t num_others) {
    std::vector<Link> links{{{1, 0}}};
    for (size_t i = 0; i < num_others; ++i) links.push_back({{0, static_cast<int>(i) + 1}});
    return links;
}

TEST(LinkRoom, TheRankWithMostLinksCounts) {
    EXPECT_EQ(most_links_of_a_rank({}), 0U);
    std::vector<Link> links = fan(3);
    EXPECT_EQ(most_links_of_a_rank(links), 4U);
    links.push_back({{0, 3, 6}, true, 1});
    EXPECT_EQ(most_links_of_a_rank(links), 5U) << "replicas share one";
}

TEST(LinkRoom, TheMostImportantLinksOfARankFindRoom) {
    EXPECT_EQ(links_with_room(fan(8)), fan(8));
    EXPECT_EQ(no_room_text(fan(8)), "");
    EXPECT_EQ(links_with_room(fan(9)), fan(8)) << "the last has none";
    EXPECT_EQ(
        no_room_text(fan(9)),
        "a card keeps 9 links by NCCL apart, so what goes from rank 0 to 9 goes through the host, which is slower; "
        "stages that send to fewer others would need fewer");
    std::vector<Link> others = fan(10);
    others.push_back({{7, 8}});
    EXPECT_EQ(links_with_room(others).size(), kMostLinks + 1) << "what only other ranks have finds room";
    EXPECT_NE(no_room_text(fan(14)).find("0 to 9, 0 to 10, 0 to 11, 0 to 12 and 2 more goes"), std::string::npos);
}

TEST(LinkRoom, TheQueuesOfACardAreThoseThatAJobSets) {
    EXPECT_EQ(std::to_string(kCardQueues), kCudaQueues);
}

TEST(LinkRoom, LinksLeaveHalfOfTheCard) {
    for (int num_multiprocessors : {16, 46, 108, 132, 148, 304}) {
        for (size_t num_links = 1; num_links <= kMostLinks; ++num_links) {
            const int blocks = blocks_of_a_link(num_multiprocessors, num_links);
            EXPECT_EQ(blocks & (blocks - 1), 0) << "a power of two";
            EXPECT_GE(blocks, 1);
            EXPECT_LE(blocks, 32);
            const int taken = blocks * static_cast<int>(num_links);
            EXPECT_TRUE(blocks == 1 || 2 * taken <= num_multiprocessors);
            const bool may_grow = blocks < 32 && 4 * taken <= num_multiprocessors;
            EXPECT_FALSE(may_grow) << num_multiprocessors << " for " << num_links << " links";
        }
    }
    EXPECT_EQ(blocks_of_a_link(132, 2), 32);
    EXPECT_EQ(blocks_of_a_link(132, 8), 8);
    EXPECT_EQ(blocks_of_a_link(0, 0), 1) << "where there is no card";
}

}  // namespace
}  // namespace vpp
