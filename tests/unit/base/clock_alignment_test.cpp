#include "base/clock_alignment.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "base/error.hpp"

namespace vpp {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

/// A clock that was `offset` ahead when the asking clock stood at 0, and is fast by `drift`.
struct OtherClock {
    int64_t offset = 0;
    double drift = 0;
    int64_t at(int64_t asking) const {
        return asking + offset + static_cast<int64_t>(static_cast<double>(asking) * drift);
    }
};

/// Questions one behind the other, whose ways there and back take 5 us and, drawn each by itself, up to `most` more.
std::vector<ClockPing> pings(const OtherClock& other, int64_t start, int count, int64_t most, uint64_t seed) {
    std::vector<ClockPing> all;
    uint64_t state = seed;
    const auto draw = [&] {
        state = state * 6364136223846793005U + 1442695040888963407U;
        return 5'000 + static_cast<int64_t>((state >> 33) % static_cast<uint64_t>(most));
    };
    int64_t now = start;
    for (int i = 0; i < count; ++i) {
        const int64_t there = draw(), back = draw();
        all.push_back({now, other.at(now + there), now + there + back});
        now += there + back;
    }
    return all;
}

TEST(EstimateOffset, AnEvenRoundTripGivesTheOffsetItself) {
    const std::vector<ClockPing> one{{1000, 1'001'500, 2000}};
    const ClockOffset offset = estimate_offset(one);
    EXPECT_EQ(offset.offset, 1'000'000);
    EXPECT_EQ(offset.at, 1500);
    EXPECT_EQ(offset.error, 500);
}

TEST(EstimateOffset, TheQuickestAnswerCounts) {
    const std::vector<ClockPing> all{{0, 900, 1000}, {2000, 2050, 2100}, {3000, 3001, 3900}};
    EXPECT_EQ(estimate_offset(all).offset, 0);
    EXPECT_EQ(estimate_offset(all).error, 50);
}

TEST(EstimateOffset, TheErrorBoundsWhatIsWrong) {
    for (uint64_t seed = 1; seed <= 200; ++seed) {
        const OtherClock other{static_cast<int64_t>(seed) * kSecond - 100 * kSecond, 0};
        const ClockOffset found = estimate_offset(pings(other, 7 * kSecond, 16, 400'000, seed));
        EXPECT_LE(std::llabs(found.offset - other.offset), found.error) << seed;
        EXPECT_LT(found.error, 205'000) << seed;
    }
}

TEST(EstimateOffset, NothingIsLearntFromNoPing) {
    EXPECT_THROW(estimate_offset({}), Error);
}

/// How far a line is off, at most, at moments between its ends.
int64_t worst(const ClockLine& line, const OtherClock& other, int64_t begin, int64_t end) {
    int64_t most = 0;
    for (int i = 0; i <= 100; ++i) {
        const int64_t asking = begin + (end - begin) / 100 * i;
        most = std::max<int64_t>(most, std::llabs(line.to_asking(other.at(asking)) - asking));
    }
    return most;
}

TEST(ClockLine, FollowsAClockThatIsFast) {
    const OtherClock other{-3600 * kSecond, 80e-6};  // 80 us a second: a bad quartz
    const int64_t begin = 5 * kSecond, end = 65 * kSecond;
    const ClockLine line(estimate_offset(pings(other, begin, 32, 30'000, 1)),
                         estimate_offset(pings(other, end, 32, 30'000, 2)));
    EXPECT_NEAR(line.drift(), 80e-6, 1e-6);
    EXPECT_LE(worst(line, other, begin, end), line.error() + 2);
    EXPECT_LT(line.error(), 35'000);
}

TEST(ClockLine, OneEstimateAloneIsOffByTheDrift) {  // what the second comparison is for
    const OtherClock other{kSecond, 80e-6};
    const int64_t begin = 5 * kSecond, end = 65 * kSecond;
    const ClockOffset first = estimate_offset(pings(other, begin, 32, 30'000, 1));
    EXPECT_GT(worst(ClockLine(first, first), other, begin, end), 4'000'000);
}

TEST(ClockLine, OneClockIsItself) {
    EXPECT_EQ(ClockLine().to_asking(123'456'789'012'345), 123'456'789'012'345);
    EXPECT_EQ(ClockLine().error(), 0);
}

TEST(ClockLine, YearsApartLoseNoNanosecond) {
    const int64_t year = 365 * 86'400 * kSecond;
    const ClockOffset offset{3 * kSecond, 50 * year, 10};
    EXPECT_EQ(ClockLine(offset, offset).to_asking(50 * year + 4 * kSecond + 1), 4 * kSecond + 1);
}

TEST(ClockLine, TimeDoesNotGoBack) {
    EXPECT_THROW(ClockLine({10, 0, 0}, {9, 0, 0}), Error);
}

}  // namespace
}  // namespace vpp
