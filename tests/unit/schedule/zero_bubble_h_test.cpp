#include "schedule/zero_bubble_h.hpp"

#include "schedule/one_f_one_b.hpp"
#include "unit/schedule/closed_forms.hpp"

namespace vpp {
namespace {

using testing::error_text;
using testing::texts;

Schedule make_h1(const ScheduleRequest& request) {
    return make_zero_bubble_h1(request.size);
}
Schedule make_h2(const ScheduleRequest& request) {
    return make_zero_bubble_h2(request.size);
}

TEST(ZeroBubbleH1, ThreeRanksFourMicrobatchesByHand) {
    const Schedule schedule = make_zero_bubble_h1({3, 1, 4});
    EXPECT_EQ(schedule.name, "ZERO_BUBBLE_H1");
    EXPECT_EQ(texts(schedule), (std::vector<std::string>{
                                   "0F0 0F1 0F2 0I0 0W0 0F3 0I1 0W1 0I2 0W2 0I3 0W3",
                                   "1F0 1F1 1I0 1F2 1I1 1W0 1F3 1I2 1W1 1I3 1W2 1W3",
                                   "2F0 2I0 2F1 2I1 2F2 2I2 2W0 2F3 2I3 2W1 2W2 2W3",
                               }));
}

TEST(ZeroBubbleH1, FewerMicrobatchesThanRanks) {
    EXPECT_EQ(texts(make_zero_bubble_h1({4, 1, 2})), (std::vector<std::string>{
                                                         "0F0 0F1 0I0 0W0 0I1 0W1",
                                                         "1F0 1F1 1I0 1I1 1W0 1W1",
                                                         "2F0 2F1 2I0 2I1 2W0 2W1",
                                                         "3F0 3I0 3F1 3I1 3W0 3W1",
                                                     }));
    for (int P = 2; P <= 12; ++P) {
        for (int M = 1; M < P; ++M) {
            const auto proved = testing::prove(make_zero_bubble_h1({P, 1, M}));
            EXPECT_EQ(proved.facts.peak_in_flight, std::vector<int>(static_cast<size_t>(P), M)) << P << ' ' << M;
            EXPECT_LE(proved.simulation.makespan, testing::prove(make_one_f_one_b({P, 1, M})).simulation.makespan);
        }
    }
}

TEST(ZeroBubbleH1, BubbleAndPeakAreTheClosedForms) {
    const auto bubble = [](int P, const StageCosts& stage) {
        const Ticks F = stage.forward, I = stage.input_gradient, W = stage.weight_gradient;
        return (P - 1) * std::max({F, I, F + I - W});
    };
    const auto span_bubble = [&](int P, const StageCosts& stage) -> std::optional<Ticks> {
        if (stage.weight_gradient > stage.input_gradient) return std::nullopt;
        return bubble(P, stage);
    };
    const testing::ClosedForms forms{bubble, span_bubble, [](const ScheduleSize& size, int) { return size.num_ranks; }};
    for (const ScheduleSize& size : testing::closed_form_sizes(1, 1, [](int P) { return P; })) {
        testing::expect_closed_forms(make_h1, {.size = size}, forms);
    }
}

TEST(ZeroBubbleH1, TransfersAddFourHopsForEachRankWhereWHidesThem) {
    const auto growth = [](int P, int M, const StageCosts& stage, Ticks transfer) {
        return testing::growth_by_transfers(make_zero_bubble_h1({P, 1, M}), stage, transfer).makespan;
    };
    for (int P = 2; P <= 9; ++P) {
        for (int M : {2 * P, 3 * P + 1, 5 * P}) {
            EXPECT_EQ(growth(P, M, {10, 20, 10, 10}, 1), 4 * (P - 1)) << P << ' ' << M;
            EXPECT_EQ(growth(P, M, {9, 14, 8, 6}, 3), 4 * (P - 1) * 3) << P << ' ' << M;
        }
    }
    // T_F >= T_W alone is not enough for it: here T_I < T_W, there 2c > T_W.
    EXPECT_EQ(growth(7, 33, {8, 7, 1, 6}, 3), 3 * 6 * 3);
    EXPECT_EQ(growth(6, 26, {6, 12, 7, 5}, 3), 5 * 5 * 3);
}

TEST(ZeroBubbleH2, TwoRanksFourMicrobatchesByHand) {
    const Schedule schedule = make_zero_bubble_h2({2, 1, 4});
    EXPECT_EQ(schedule.name, "ZERO_BUBBLE_H2");
    EXPECT_EQ(texts(schedule), (std::vector<std::string>{
                                   "0F0 0F1 0F2 0I0 0W0 0F3 0I1 0W1 0I2 0W2 0I3 0W3",
                                   "1F0 1I0 1F1 1I1 1F2 1I2 1W0 1F3 1I3 1W1 1W2 1W3",
                               }));
}

TEST(ZeroBubbleH2, ThreeRanksFiveMicrobatchesByHand) {
    EXPECT_EQ(texts(make_zero_bubble_h2({3, 1, 5})), (std::vector<std::string>{
                                                         "0F0 0F1 0F2 0F3 0F4 0I0 0W0 0I1 0W1 0I2 0W2 0I3 0W3 0I4 0W4",
                                                         "1F0 1F1 1F2 1I0 1F3 1I1 1F4 1I2 1W0 1I3 1W1 1I4 1W2 1W3 1W4",
                                                         "2F0 2I0 2F1 2I1 2F2 2I2 2F3 2I3 2F4 2I4 2W0 2W1 2W2 2W3 2W4",
                                                     }));
}

TEST(ZeroBubbleH2, BubbleAndPeakAreTheClosedForms) {
    const auto longest = [](Ticks least, int P, const StageCosts& stage) {
        const Ticks F = stage.forward, I = stage.input_gradient, W = stage.weight_gradient;
        return (P - 1) * std::max({least, F + I - 2 * W, I - F});
    };
    const testing::ClosedForms forms{
        [&](int P, const StageCosts& stage) { return longest(stage.forward, P, stage); },
        [&](int P, const StageCosts& stage) { return longest(0, P, stage); },
        [](const ScheduleSize& size, int) { return 2 * size.num_ranks - 1; },
    };
    for (const ScheduleSize& size : testing::closed_form_sizes(1, 1, [](int P) { return 2 * P - 1; })) {
        testing::expect_closed_forms(make_h2, {.size = size}, forms);
    }
}

TEST(ZeroBubbleH2, TransfersAddTwoHopsForEachRankToTheSpan) {
    for (int P = 2; P <= 9; ++P) {
        for (int M : {2 * P - 1, 2 * P, 5 * P}) {
            const Schedule schedule = make_zero_bubble_h2({P, 1, M});
            EXPECT_EQ(testing::growth_by_transfers(schedule, {10, 20, 10, 10}, 1).span, 2 * (P - 1)) << P << ' ' << M;
            EXPECT_EQ(testing::growth_by_transfers(schedule, {9, 14, 8, 6}, 3).span, 2 * (P - 1) * 3) << P << ' ' << M;
        }
    }
}

TEST(ZeroBubbleH, WhatCannotBeIsRefused) {
    EXPECT_CONTAINS(error_text(ErrorKind::Plan,
                               [] {
                                   make_zero_bubble_h1({2, 2, 4});
                               }),
                    "ZERO_BUBBLE_H1 puts one stage on each rank (got virtual_chunks = 2, expected 1); try "
                    "virtual_chunks = 1 or schedule_type = \"INTERLEAVED_ZERO_BUBBLE\"");
    EXPECT_CONTAINS(error_text(ErrorKind::Plan, [] { make_zero_bubble_h2({2, 3, 4}); }), "ZERO_BUBBLE_H2 puts one");
    EXPECT_EQ(error_text(ErrorKind::Plan,
                         [] {
                             make_zero_bubble_h2({4, 1, 6});
                         }),
              "ZERO_BUBBLE_H2 needs at least 2 num_stages - 1 microbatches (got num_microbatches = 6 with num_stages = "
              "4, expected at least 7); try num_microbatches = 7, 3 ranks or schedule_type = "
              "\"ZERO_BUBBLE_H1\"");
    EXPECT_CONTAINS(error_text(ErrorKind::Plan,
                               [] {
                                   make_zero_bubble_h2({4, 1, 2});
                               }),
                    "try num_microbatches = 7 or schedule_type = \"ZERO_BUBBLE_H1\"");
    for (int P = 2; P <= 8; ++P) {
        error_text(ErrorKind::Plan, [&] { make_zero_bubble_h2({P, 1, 2 * P - 2}); });
        EXPECT_NO_THROW(make_zero_bubble_h2({P, 1, 2 * P - 1}));
    }
}

}  // namespace
}  // namespace vpp
