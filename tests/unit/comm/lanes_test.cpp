#include "comm/lanes.hpp"

#include <gtest/gtest.h>

namespace vpp::detail {
namespace {

const LaneKey kLane{1, {3, 2, Direction::Forward}};
const LaneKey kOther{1, {3, 2, Direction::Backward}};

TEST(Lanes, PairsInOrderWhicheverComesFirst) {
    Lanes<int> lanes;
    EXPECT_EQ(lanes.add(kLane, std::make_shared<int>(10)).arrival, nullptr);
    EXPECT_EQ(*lanes.post(kLane, 100).arrival, 10);
    EXPECT_EQ(lanes.post(kLane, 200).arrival, nullptr);
    const auto second = lanes.add(kLane, std::make_shared<int>(20));
    EXPECT_EQ(*second.arrival, 20);
    EXPECT_EQ(second.capacity_bytes, 200u);
    EXPECT_EQ(*lanes.front(kLane).arrival, 10);
    lanes.pop(kLane);
    EXPECT_EQ(*lanes.front(kLane).arrival, 20);
    lanes.pop(kLane);
    EXPECT_THROW(lanes.front(kLane), Error);
}

TEST(Lanes, KeepChannelsAndPeersApart) {
    Lanes<int> lanes;
    lanes.post(kLane, 1);
    EXPECT_EQ(lanes.add(kOther, std::make_shared<int>(1)).arrival, nullptr);
    EXPECT_EQ(lanes.add({2, kLane.channel}, std::make_shared<int>(2)).arrival, nullptr);
    EXPECT_EQ(lanes.front(kLane).arrival, nullptr);
    EXPECT_EQ(lanes.unposted(1, 3), std::vector<Channel>{kOther.channel});
    EXPECT_TRUE(lanes.unposted(1, 0).empty());
    EXPECT_TRUE(lanes.unposted(0, 3).empty());
}

TEST(Lanes, NamesBothSizesOfAMessageThatIsTooLong) {
    EXPECT_NO_THROW(check_capacity(0, kLane, 8, 8));
    try {
        check_capacity(0, kLane, 9, 8);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::RanksDisagree);
        EXPECT_STREQ(error.what(),
                     "rank 1 sent forward edge 3, microbatch 2 with a size that rank 0 does not expect (got 9 bytes, "
                     "expected at most 8)");
    }
}

}  // namespace
}  // namespace vpp::detail
