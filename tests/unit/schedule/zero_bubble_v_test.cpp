#include "schedule/zero_bubble_v.hpp"

#include <algorithm>

#include "unit/schedule/v_support.hpp"

namespace vpp {
namespace {

using testing::prove;
using testing::texts;

// Laid by hand from the seven phases.
TEST(ZeroBubbleVFixed, TwoRanksThreeMicrobatches) {
    const Schedule schedule = make_zero_bubble_v_fixed({2, 2, 3});
    EXPECT_EQ(schedule.name, "ZERO_BUBBLE_V");
    EXPECT_EQ(schedule.rank_of_stage, (std::vector<int>{0, 1, 1, 0}));
    EXPECT_EQ(texts(schedule), (std::vector<std::string>{
                                   "0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0I0 0W0 3F2 3I2 3W2 0I1 0W1 0I2 0W2",
                                   "1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1I1 2I2 1I2 1W1 2W2 1W2",
                               }));
    EXPECT_EQ(texts(make_zero_bubble_v_fixed({2, 2, 1})), (std::vector<std::string>{
                                                              "0F0 3F0 3I0 3W0 0I0 0W0",
                                                              "1F0 2F0 2I0 2W0 1I0 1W0",
                                                          }));
    EXPECT_EQ(texts(make_zero_bubble_v_fixed({1, 2, 2})),
              (std::vector<std::string>{"0F0 1F0 1I0 1W0 0F1 0I0 0W0 1F1 1I1 1W1 0I1 0W1"}));
}

// With T = 2 ticks of a full rank: the ramp of (P-1) T / 2 = P-1 ticks, and not a tick more.
TEST(ZeroBubbleVFixed, EqualTimesLeaveTheRampOnly) {
    for (int P = 1; P <= 16; ++P) {
        for (int M : {2 * P - 1, 2 * P, 2 * P + 1, 3 * P + 1, 4 * P}) {
            const auto proved = prove(make_zero_bubble_v_fixed({P, 2, M}));
            EXPECT_EQ(proved.simulation.span, 6 * M) << P << ' ' << M;
            EXPECT_EQ(proved.simulation.makespan, 6 * M + P - 1) << P << ' ' << M;
            const auto& peaks = proved.facts.peak_in_flight;
            EXPECT_EQ(std::vector<int>(static_cast<size_t>(P), 2 * P), peaks) << P << ' ' << M;
        }
    }
}

TEST(ZeroBubbleVFixed, FewMicrobatchesEndWithinTheMemory) {
    for (int P = 1; P <= 16; ++P) {
        for (int M = 1; M < 2 * P - 1; ++M) {
            const auto proved = prove(make_zero_bubble_v_fixed({P, 2, M}));
            EXPECT_EQ(proved.facts.num_computing, int64_t{3} * 2 * P * M);
            for (int peak : proved.facts.peak_in_flight) EXPECT_LE(peak, 2 * std::min(P, M)) << P << ' ' << M;
            EXPECT_LE(proved.simulation.makespan, 6 * M + 4 * P) << P << ' ' << M;
        }
    }
}

TEST(ZeroBubbleVFixed, RandomShapesAreProved) {
    testing::expect_random_shapes_proved("ZERO_BUBBLE_V", 0, 300);
}

TEST(ZeroBubbleVFixed, OneStageOnEachRankIsRefused) {
    EXPECT_EQ(
        testing::error_text(ErrorKind::Plan,
                            [] {
                                make_zero_bubble_v_fixed({2, 1, 4});
                            }),
        "ZERO_BUBBLE_V puts two stages on each rank (got virtual_chunks = 1, expected 2); try virtual_chunks = 2");
}

}  // namespace
}  // namespace vpp
