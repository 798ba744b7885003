#include "base/live_bytes.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace vpp {
namespace {

TEST(LiveBytes, ThePeakIsTheMostThatWasAliveAtOnce) {
    const int64_t before = live_bytes::now();
    live_bytes::restart_peak();
    live_bytes::add(100);
    live_bytes::add(50);
    live_bytes::add(-120);
    live_bytes::add(60);
    EXPECT_EQ(live_bytes::now(), before + 90);
    EXPECT_EQ(live_bytes::peak(), before + 150);
    live_bytes::restart_peak();
    EXPECT_EQ(live_bytes::peak(), before + 90);
    live_bytes::add(-90);
    EXPECT_EQ(live_bytes::now(), before);
    EXPECT_EQ(live_bytes::peak(), before + 90);
}

TEST(LiveBytes, ThreadsAddToOneSum) {
    const int64_t before = live_bytes::now();
    live_bytes::restart_peak();
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 4; ++i) {
            threads.emplace_back([] {
                for (int k = 0; k < 1000; ++k) live_bytes::add(k % 2 == 0 ? 8 : -8);
                live_bytes::add(1);
            });
        }
    }
    EXPECT_EQ(live_bytes::now(), before + 4);
    EXPECT_LE(live_bytes::peak(), before + 4 * 9);
    live_bytes::add(-4);
}

}  // namespace
}  // namespace vpp
