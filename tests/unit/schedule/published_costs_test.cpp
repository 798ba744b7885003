// The published cost row of Zero bubble pipeline parallelism (arXiv 2401.10241): the 1.5B model on 8 ranks with 64
// microbatches, profiled times in milliseconds. Bubble rates to four decimals, each in the convention it is given in.
#include <cmath>

#include "schedule/generators.hpp"
#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

constexpr const char* kCosts = "F=18.546,I=18.097,W=9.321,comm=0.762";

Simulation simulated(const std::string& name, int stages_per_rank) {
    const ScheduleSize size{8, stages_per_rank, 64};
    return testing::prove(make_schedule(name, {.size = size}), parse_costs(kCosts, size)).simulation;
}

/// In ten-thousandths, rounded.
long rounded(double rate) {
    return std::lround(rate * 10000);
}

TEST(PublishedCosts, BubbleRatesToFourDecimals) {
    EXPECT_EQ(rounded(simulated("1F1B", 1).bubble_rate()), 1240);
    EXPECT_EQ(rounded(simulated("ZERO_BUBBLE_H1", 1).bubble_rate()), 674);
    EXPECT_EQ(rounded(simulated("ZERO_BUBBLE_H2", 1).span_bubble_rate()), 444);
}

// The published figure, .0443, pays for the edge from the last rank to the first only once a group; all hops count
// here.
TEST(PublishedCosts, InterleavedPaysForEveryHop) {
    EXPECT_EQ(rounded(simulated("INTERLEAVED_1F1B", 3).bubble_rate()), 461);
}

TEST(PublishedCosts, IdealIsWhatEveryRankComputes) {
    const Simulation simulation = simulated("1F1B", 1);
    for (Ticks busy : simulation.busy) EXPECT_EQ(busy, 64 * (18546 + 18097 + 9321));
}

}  // namespace
}  // namespace vpp
