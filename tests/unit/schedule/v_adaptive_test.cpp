#include "schedule/v_adaptive.hpp"

#include <algorithm>

#include "schedule/v_half.hpp"
#include "schedule/zero_bubble_v.hpp"
#include "unit/schedule/v_support.hpp"

namespace vpp {
namespace {

using testing::prove;
using testing::texts;

// One rank never waits: the microbatches follow each other at any limit.
TEST(VAdaptive, OneRankByHand) {
    EXPECT_EQ(texts(make_v_adaptive({.size = {1, 2, 1}})), (std::vector<std::string>{"0F0 1F0 1I0 0I0 1W0 0W0"}));
    EXPECT_EQ(prove(make_v_adaptive({.size = {1, 2, 5}, .memory_limit = 1})).simulation.makespan, 30);
}

// The bound of arXiv 2405.15362 for k stage activations, and the ramp.
TEST(VAdaptive, EqualTimesStayNearTheBoundOfTheMemory) {
    for (int P = 2; P <= 5; ++P) {
        const int M = 3 * P;
        for (int k = 2 * ((P + 4) / 3); k <= 2 * P + 1; ++k) {
            const auto proved = prove(make_v_adaptive({.size = {P, 2, M}, .memory_limit = k / 2.0}));
            const Ticks bound = 6 * M + std::max(6 * P - 3 * k - 1, P - 1);
            EXPECT_GE(proved.simulation.makespan, bound);
            EXPECT_LE(proved.simulation.makespan, bound + 2) << P << ' ' << k;
            for (int peak : proved.facts.peak_in_flight) EXPECT_LE(peak, k);
        }
    }
}

TEST(VAdaptive, IsNotLongerThanTheOthersAtTheirMemory) {
    for (int P = 2; P <= 4; ++P) {
        testing::Draws draws(static_cast<uint64_t>(P));
        ScheduleRequest request{.size = {P, 2, 2 * P + 1}, .costs = testing::random_costs(2 * P, draws)};
        const auto makespan = [&](const Schedule& schedule) {
            return prove(schedule, request.costs).simulation.makespan;
        };
        EXPECT_LE(makespan(make_v_adaptive(request)), makespan(make_zero_bubble_v_fixed(request.size)));
        request.memory_limit = (P + 2) / 2;
        EXPECT_LE(makespan(make_v_adaptive(request)), makespan(make_v_half(request)));
        request.memory_limit = (P + 4) / 3;
        EXPECT_LE(makespan(make_v_adaptive(request)), makespan(make_v_min(request)));
    }
}

// The costs of each stage and of transfers are looked at.
TEST(VAdaptive, UnevenStagesMakeAnotherOrder) {
    ScheduleRequest request{.size = {4, 2, 8}, .memory_limit = 4};
    const Schedule even = make_v_adaptive(request);
    request.costs = parse_costs("F=1/1/1/3/1/1/1/2,I=1/2/1/3/1/1/1/2,W=1/1/2/1/1/1/3/1,comm=0.5", request.size);
    const Schedule uneven = make_v_adaptive(request);
    EXPECT_LT(prove(uneven, request.costs).simulation.makespan, prove(even, request.costs).simulation.makespan);
}

TEST(VAdaptive, WhatCannotBeIsRefused) {
    EXPECT_CONTAINS(testing::error_text(ErrorKind::Plan,
                                        [] {
                                            make_v_adaptive({.size = {2, 1, 4}});
                                        }),
                    "V_ADAPTIVE puts two stages on each rank");
    EXPECT_CONTAINS(testing::error_text(ErrorKind::Plan,
                                        [] {
                                            make_v_adaptive({.size = {2, 2, 4}, .memory_limit = 0});
                                        }),
                    "V_ADAPTIVE cannot keep to memory_limit (got 0, expected at least 1");
}

}  // namespace
}  // namespace vpp
