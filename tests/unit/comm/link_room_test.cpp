#include "comm/link_room.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
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
    links.push_back(links.back());
    EXPECT_EQ(most_links_of_a_rank(links), 4U) << "every action of a schedule names its own";
    links.push_back({{0, 3, 6}, true, 1});
    EXPECT_EQ(most_links_of_a_rank(links), 5U) << "replicas share one";
}

TEST(LinkRoom, MoreLinksThanACardKeepsApartAreRefused) {
    check_links_fit(fan(8));
    try {
        check_links_fit(fan(9));
        ADD_FAILURE() << "one too many";
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::Plan);
        const std::string text = error.what();
        EXPECT_NE(text.find("rank 0 would have 10 links to other cards by NCCL, and a card keeps 9 apart"),
                  std::string::npos)
            << text;
        EXPECT_NE(text.find("mesh.transport = \"mpi\""), std::string::npos) << text;
    }
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
