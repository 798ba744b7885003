#include "launch/interfaces.hpp"

#include <gtest/gtest.h>

namespace vpp {
namespace {

using Names = std::vector<std::string>;

const std::vector<HostAddress> kHost{
    {"lo", 0x7f000001}, {"eth0", 0xc0a80005}, {"eth1", 0x0a000107}, {"eth1", 0x0a000108}};

TEST(Interfaces, NamesAndSubnetsAreFoundInTheOrderInWhichTheyAreGiven) {
    EXPECT_EQ(interfaces_in("eth1", kHost), Names{"eth1"});
    EXPECT_EQ(interfaces_in("10.0.0.0/16", kHost), Names{"eth1"});
    EXPECT_EQ(interfaces_in("10.0.1.7/32,192.168.0.0/24", kHost), (Names{"eth1", "eth0"}));
    EXPECT_EQ(interfaces_in("0.0.0.0/0", kHost), (Names{"lo", "eth0", "eth1"}));
}

TEST(Interfaces, WhatIsNeitherIsLeftOut) {
    for (const char* list : {"", ",", "eth", "eth10", "10.0.0.0", "10.0.0.0/24", "10.0.0/16", "10.0.0.0/33",
                             "10.0.0.0/", "10.0.0.0/1x", "10.0.0.0/-1", "/8"}) {
        EXPECT_EQ(interfaces_in(list, kHost), Names()) << list;
    }
}

TEST(Interfaces, ThisHostHasTheOneThatLeadsToItself) {
    EXPECT_EQ(interfaces_in("127.0.0.0/8", look_at_addresses()), Names{"lo"});
}

}  // namespace
}  // namespace vpp
