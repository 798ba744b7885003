#include "comm/clock_exchange.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "comm/in_process.hpp"

namespace vpp {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

/// Rank r's clock is r hours ahead of rank 0's.
std::vector<ClockOffset> compare(int num_ranks, InProcessOptions options = {}) {
    std::vector<ClockOffset> offsets;
    options.num_ranks = num_ranks;
    InProcessWorld(options).run([&](Transport& transport) {
        const int64_t ahead = transport.rank() * 3600 * kSecond;
        const auto found = compare_clocks(
            transport, [ahead] { return steady_nanoseconds() + ahead; }, 8);
        if (transport.rank() == 0) {
            offsets = found;
        } else {
            EXPECT_TRUE(found.empty());
        }
    });
    return offsets;
}

void expect_hours(const std::vector<ClockOffset>& offsets) {
    for (size_t rank = 0; rank < offsets.size(); ++rank) {
        const int64_t truth = static_cast<int64_t>(rank) * 3600 * kSecond;
        EXPECT_LE(std::llabs(offsets[rank].offset - truth), offsets[rank].error) << rank;
        EXPECT_LT(offsets[rank].error, kSecond) << rank;
    }
}

TEST(CompareClocks, FindsEachRanksOffsetWithinItsError) {
    const std::vector<ClockOffset> offsets = compare(4);
    ASSERT_EQ(offsets.size(), 4U);
    expect_hours(offsets);
    EXPECT_EQ(offsets[0].error, 0);
}

TEST(CompareClocks, WorksWhereSendsWaitAndMessagesAreLate) {
    expect_hours(compare(3, {.overlap = false}));
    expect_hours(compare(3, {.seed = 7, .delay_probability = 0.5}));
}

TEST(CompareClocks, OneRankHasItsOwn) {
    EXPECT_EQ(compare(1).size(), 1U);
}

TEST(CompareClocks, ChannelsAreFreeAgainAfterwards) {
    InProcessWorld({.num_ranks = 2}).run([](Transport& transport) {
        for (int i = 0; i < 3; ++i) compare_clocks(transport, steady_nanoseconds, 2);
    });
}

}  // namespace
}  // namespace vpp
