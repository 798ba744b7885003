#include "schedule/zero_bubble_v.hpp"

#include <algorithm>
#include <limits>
#include <utility>

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

TEST(ZeroBubbleV, WithoutALimitItIsTheFixedForm) {
    const ScheduleRequest request{.size = {3, 2, 7}};
    EXPECT_EQ(texts(make_zero_bubble_v(request)), texts(make_zero_bubble_v_fixed(request.size)));
    EXPECT_EQ(texts(make_schedule("ZERO_BUBBLE", request)), texts(make_schedule("ZERO_BUBBLE_V", request)));
}

// Laid by hand in rounds: two places on each rank; the next F down takes that which the first W has freed, the next F
// up that of the other W.
TEST(ZeroBubbleV, OneMicrobatchAtATime) {
    const ScheduleRequest request{.size = {2, 2, 2}, .memory_limit = 1};
    const Schedule schedule = make_zero_bubble_v(request);
    EXPECT_EQ(schedule.name, "ZERO_BUBBLE_V");
    EXPECT_EQ(texts(schedule), (std::vector<std::string>{
                                   "0F0 3F0 3I0 3W0 0F1 0I0 0W0 3F1 3I1 3W1 0I1 0W1",
                                   "1F0 2F0 2I0 2W0 1F1 1I0 1W0 2F1 2I1 1I1 2W1 1W1",
                               }));
}

TEST(ZeroBubbleV, EqualTimesAreNotWorseThanTheFixedForm) {
    for (int P = 2; P <= 16; ++P) {
        for (int M : {P <= 4 ? P : 4 * P, 2 * P, 3 * P + 1}) {
            for (int limit : {P, P + 1, 2 * P}) {
                const auto greedy = prove(make_zero_bubble_v({.size = {P, 2, M}, .memory_limit = limit}));
                const auto fixed = prove(make_zero_bubble_v_fixed({P, 2, M}));
                EXPECT_LE(greedy.simulation.span, fixed.simulation.span) << P << ' ' << M << ' ' << limit;
                EXPECT_LE(greedy.simulation.makespan, fixed.simulation.makespan) << P << ' ' << M << ' ' << limit;
                for (int peak : greedy.facts.peak_in_flight) EXPECT_LE(peak, 2 * limit);
            }
        }
    }
}

// The costs of the paper's first model, T_W about half of T_F and T_I, with transfers.
TEST(ZeroBubbleV, MeasuredCostsAreNotWorseThanTheFixedForm) {
    for (int M : {4, 12}) {
        ScheduleRequest request{.size = {4, 2, M}};
        request.costs = parse_costs("F=18.546,I=18.097,W=9.321,comm=0.762", request.size);
        const Ticks fixed = prove(make_zero_bubble_v(request), request.costs).simulation.span;
        request.memory_limit = 4;
        EXPECT_LE(prove(make_zero_bubble_v(request), request.costs).simulation.span, fixed) << M;
        request.memory_limit = 8;
        EXPECT_LE(prove(make_zero_bubble_v(request), request.costs).simulation.span, fixed) << M;
    }
}

// What the authors' program gives at the same limits, in ticks of 0.5 us: rates of .0757, .0600, .0449 and .0236.
TEST(ZeroBubbleV, IsNotWorseThanThePublishedGreedy) {
    ScheduleRequest request{.size = {8, 2, 24}};
    request.costs = parse_costs("F=18.546,I=18.097,W=9.321,comm=0.762", request.size);
    for (const auto& [limit, span] : std::vector<std::pair<int, Ticks>>{{8, 2386966}, {12, 2309895}, {16, 2259486}}) {
        request.memory_limit = limit;
        const auto proved = prove(make_zero_bubble_v(request), request.costs);
        EXPECT_LE(proved.simulation.span, span) << limit;
        for (int peak : proved.facts.peak_in_flight) EXPECT_LE(peak, 2 * limit);
    }
}

TEST(ZeroBubbleV, LimitsThatCannotBeMetAreRefused) {
    const auto text = [](double limit) {
        return testing::error_text(ErrorKind::Plan, [&] {
            make_zero_bubble_v({.size = {4, 2, 8}, .memory_limit = limit});
        });
    };
    EXPECT_EQ(text(0.5),
              "ZERO_BUBBLE_V cannot keep to memory_limit (got 0.5, expected at least 1, since a microbatch is "
              "on both stages of a rank); try memory_limit = 1");
    EXPECT_CONTAINS(text(-3), "got -3");
    EXPECT_CONTAINS(text(std::numeric_limits<double>::quiet_NaN()), "try memory_limit = 1");
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
