#include "schedule/zero_bubble_greedy.hpp"

#include <cmath>

#include "schedule/generators.hpp"
#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

using testing::prove;
using testing::texts;

ScheduleCosts even_costs(int num_stages, const StageCosts& stage, Ticks transfer = 0) {
    ScheduleCosts costs;
    costs.stages.assign(static_cast<size_t>(num_stages), stage);
    costs.transfer = transfer;
    return costs;
}

/// The first model of the zero bubble paper: times in microseconds, activations 34h + 5as of which 32h wait for W.
ScheduleRequest published_request(double memory_limit) {
    constexpr int64_t kHidden = 2304, kHeads = 24, kLength = 1024;
    return {.size = {8, 1, 64},
            .costs = even_costs(8, {18546, 18097 + 9321, 18097, 9321}, 762),
            .memory_limit = memory_limit,
            .activation = {34 * kHidden + 5 * kHeads * kLength, 32 * kHidden}};
}

double to_four_places(double rate) {
    return std::round(rate * 1e4) / 1e4;
}

/// The most that a rank holds, counted afresh from the lists.
int64_t largest_peak(const Schedule& schedule, const ActivationSize& activation) {
    int64_t peak = 0;
    for (const std::vector<Action>& list : schedule.actions) {
        int64_t now = 0;
        for (const Action& action : list) {
            if (action.kind == ActionKind::F) now += activation.whole;
            if (action.kind == ActionKind::I) now -= activation.whole - activation.until_weight;
            if (action.kind == ActionKind::W) now -= activation.until_weight;
            peak = std::max(peak, now);
        }
    }
    return peak;
}

// Two ranks, unit costs, at most two activations: rank 1 starts I as soon as it can, rank 0 fills its waits with W.
TEST(ZeroBubbleGreedy, TwoRanksByHand) {
    const Schedule schedule = make_zero_bubble_greedy({.size = {2, 1, 3}});
    EXPECT_EQ(schedule.name, "ZERO_BUBBLE_GREEDY");
    EXPECT_EQ(schedule.rank_of_stage, (std::vector<int>{0, 1}));
    EXPECT_EQ(texts(schedule), (std::vector<std::string>{
                                   "0F0 0F1 0I0 0W0 0F2 0I1 0W1 0I2 0W2",
                                   "1F0 1I0 1F1 1I1 1W0 1F2 1I2 1W1 1W2",
                               }));
}

TEST(ZeroBubbleGreedy, PublishedCostRow) {
    const auto at = [](double limit) {
        const ScheduleRequest request = published_request(limit);
        return to_four_places(prove(make_zero_bubble_greedy(request), request.costs).simulation.span_bubble_rate());
    };
    EXPECT_LE(at(8), .0674);   // ZB-1p
    EXPECT_LE(at(16), .0026);  // ZB-2p
}

// With all of an activation kept to W, 16 of them cannot hold the W that rank 7 would have to leave for its end.
TEST(ZeroBubbleGreedy, PublishedRowNeedsItsActivationSizes) {
    ScheduleRequest request = published_request(16);
    request.activation = {};
    const Ticks ideal = 64 * (18546 + 18097 + 9321);
    const Ticks least_span = 7 * (18546 + 762) + ideal - 16 * 9321 + 7 * (18097 + 762) + 9321;
    const Simulation simulation = prove(make_zero_bubble_greedy(request), request.costs).simulation;
    EXPECT_GE(simulation.span, least_span);
    EXPECT_EQ(to_four_places(simulation.span_bubble_rate()), .0415);
    EXPECT_EQ(to_four_places(static_cast<double>(least_span - ideal) / static_cast<double>(least_span)), .0415);
}

// At unit costs: ZB-H1's bubble of P-1 at its memory, no bubble within the span at twice that.
TEST(ZeroBubbleGreedy, UnitCostsAreNoWorseThanTheHandMadeSchedules) {
    for (int P = 1; P <= 10; ++P) {
        for (int M : {2 * P, 2 * P + 3, 4 * P}) {
            const auto one = prove(make_zero_bubble_greedy({.size = {P, 1, M}}));
            EXPECT_LE(one.simulation.span, 3 * M + P - 1) << P << ' ' << M;
            const auto two = prove(make_zero_bubble_greedy({.size = {P, 1, M}, .memory_limit = 2.0 * P}));
            EXPECT_EQ(two.simulation.span, 3 * M) << P << ' ' << M;
        }
    }
}

TEST(ZeroBubbleGreedy, NeverOverTheLimitAndAlwaysProved) {
    uint64_t key = 11;
    const auto draw = [&](int bound) { return static_cast<int>((key = mix64(key)) % static_cast<uint64_t>(bound)); };
    for (int round = 0; round < 400; ++round) {
        ScheduleRequest request{.size = {1 + draw(8), 1, 1 + draw(24)}};
        for (int s = 0; s < request.size.num_ranks; ++s) {
            const Ticks input = draw(9), weight = draw(9);
            request.costs.stages.push_back({draw(9), input + weight, input, weight});
        }
        request.costs.transfer = draw(4);
        request.memory_limit = 1 + draw(40) / 2.0;
        request.activation = {10, 1 + draw(10)};
        const auto proved = prove(make_zero_bubble_greedy(request), request.costs);
        EXPECT_EQ(proved.facts.num_computing, int64_t{3} * request.size.num_stages() * request.size.num_microbatches);
        EXPECT_LE(static_cast<double>(largest_peak(proved.lowered, request.activation)), *request.memory_limit * 10);
    }
}

TEST(ZeroBubbleGreedy, MoreMemoryIsUsedAndHelps) {
    const auto span_at = [](double limit) {
        const ScheduleRequest request{.size = {6, 1, 24}, .costs = even_costs(6, {2, 4, 2, 2}), .memory_limit = limit};
        const auto proved = prove(make_zero_bubble_greedy(request), request.costs);
        EXPECT_EQ(largest_peak(proved.lowered, {}), static_cast<int64_t>(limit));
        return proved.simulation.span;
    };
    EXPECT_EQ(span_at(1), 24 * (6 * 2 + 6 * 2 + 2));  // one microbatch after the other; rank 0's W in its way
    EXPECT_LT(span_at(3), span_at(1));
    EXPECT_LT(span_at(6), span_at(3));
    EXPECT_LT(span_at(11), span_at(6));
}

TEST(ZeroBubbleGreedy, TransfersByPlaceCount) {
    const auto actions = [](const ScheduleCosts& costs) {
        return make_zero_bubble_greedy({.size = {4, 1, 12}, .costs = costs, .memory_limit = 5.0}).actions;
    };
    const ScheduleCosts for_all = even_costs(4, {20, 40, 20, 20}, 10), free = even_costs(4, {20, 40, 20, 20});
    ScheduleCosts by_place = free;
    by_place.transfer_of = {{0, 10}, {1, 10}, {2, 10}};
    EXPECT_TRUE(actions(by_place) == actions(for_all));
    EXPECT_FALSE(actions(by_place) == actions(free));
    by_place.transfer_of.erase(1);
    EXPECT_FALSE(actions(by_place) == actions(for_all));
}

// Costs averaged over the stages, as the authors feed them, give orders that are slower under the true costs.
TEST(ZeroBubbleGreedy, EveryStageHasItsOwnCosts) {
    uint64_t key = 5;
    const auto draw = [&] { return static_cast<Ticks>(1 + (key = mix64(key)) % 9); };
    Ticks own = 0, averaged = 0;
    for (int round = 0; round < 20; ++round) {
        ScheduleCosts costs;
        StageCosts sum{0, 0, 0, 0};
        for (int s = 0; s < 4; ++s) {
            const StageCosts stage{draw(), 0, draw(), draw()};
            costs.stages.push_back(stage);
            sum.forward += stage.forward;
            sum.input_gradient += stage.input_gradient;
            sum.weight_gradient += stage.weight_gradient;
        }
        const ScheduleCosts average = even_costs(4, sum);  // fourfold: the scale of all costs decides nothing
        own += prove(make_zero_bubble_greedy({.size = {4, 1, 12}, .costs = costs}), costs).simulation.span;
        averaged += prove(make_zero_bubble_greedy({.size = {4, 1, 12}, .costs = average}), costs).simulation.span;
    }
    EXPECT_LT(own, averaged);
}

TEST(ZeroBubbleGreedy, WhatItCannotTakeIsRefused) {
    EXPECT_EQ(
        testing::error_text(ErrorKind::Plan,
                            [] {
                                make_zero_bubble_greedy({.size = {4, 1, 8}, .memory_limit = 0.5});
                            }),
        "ZERO_BUBBLE_GREEDY holds at least one microbatch on each rank (got memory_limit = 0.5, expected at least "
        "1); try memory_limit = 1");
    const std::string stages = testing::error_text(ErrorKind::Plan, [] {
        make_zero_bubble_greedy({.size = {4, 2, 8}});
    });
    EXPECT_CONTAINS(stages, "try virtual_chunks = 1");
}

}  // namespace
}  // namespace vpp
