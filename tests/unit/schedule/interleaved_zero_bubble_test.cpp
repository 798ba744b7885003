#include "schedule/interleaved_zero_bubble.hpp"

#include "schedule/zero_bubble_h.hpp"
#include "unit/schedule/closed_forms.hpp"

namespace vpp {
namespace {

using testing::prove;
using testing::texts;

// Warm-up of (P-1-r) + (v-1)N = 3 and 2 forwards; W lags r steps.
TEST(InterleavedZeroBubble, TwoRanksTwoStagesFourMicrobatchesByHand) {
    const Schedule schedule = make_interleaved_zero_bubble({.size = {2, 2, 4}});
    EXPECT_EQ(schedule.name, "INTERLEAVED_ZERO_BUBBLE");
    EXPECT_EQ(schedule.rank_of_stage, (std::vector<int>{0, 1, 0, 1}));
    EXPECT_EQ(texts(schedule),
              (std::vector<std::string>{
                  "0F0 0F1 2F0 2F1 2I0 2W0 0F2 2I1 2W1 0F3 0I0 0W0 2F2 0I1 0W1 2F3 2I2 2W2 2I3 2W3 0I2 0W2 0I3 0W3",
                  "1F0 1F1 3F0 3I0 3F1 3I1 3W0 1F2 1I0 3W1 1F3 1I1 1W0 3F2 3I2 1W1 3F3 3I3 3W2 1I2 3W3 1I3 1W2 1W3",
              }));
}

TEST(InterleavedZeroBubble, OneStageOnEachRankIsZeroBubbleH1) {
    for (int P = 1; P <= 9; ++P) {
        for (int M = 1; M <= 4 * P; ++M) {
            const Schedule one = make_interleaved_zero_bubble({.size = {P, 1, M}});
            EXPECT_EQ(one.actions, make_zero_bubble_h1({P, 1, M}).actions) << P << ' ' << M;
        }
    }
}

Ticks bubble(int P, const StageCosts& stage) {
    const Ticks F = stage.forward, I = stage.input_gradient, W = stage.weight_gradient;
    return (P - 1) * std::max({F, I, F + I - W});
}

std::optional<Ticks> span_bubble(int P, const StageCosts& stage) {
    if (stage.weight_gradient > stage.input_gradient) return std::nullopt;
    return bubble(P, stage);
}

TEST(InterleavedZeroBubble, BubbleAndPeakAreTheClosedForms) {
    for (const ScheduleSize& size : testing::closed_form_sizes(1, 4, [](int P) { return P; })) {
        const int P = size.num_ranks, M = size.num_microbatches;
        std::vector<int> groups{M / (M / P)};
        if (P <= 8) groups.insert(groups.end(), {P, P + 1, M});
        for (int group : groups) {
            if (group > M || (M % group > 0 && M % group < P)) continue;
            const auto peak = [&](const ScheduleSize& of, int) {
                const int v = of.stages_per_rank;
                return group == of.num_ranks ? v * of.num_ranks  // P activations, exactly
                                             : std::min((v - 1) * group + of.num_ranks, v * of.num_microbatches);
            };
            SCOPED_TRACE("N " + std::to_string(group));
            testing::expect_closed_forms(make_interleaved_zero_bubble, {.size = size, .interleave_group = group},
                                         {bubble, span_bubble, peak});
        }
    }
}

TEST(InterleavedZeroBubble, AnyNumberOfMicrobatchesEndsAtTheMemoryOf1f1b) {
    for (int P = 1; P <= 8; ++P) {
        for (int v = 1; v <= 4; ++v) {
            for (int M = 1; M <= 3 * P + 1; ++M) {
                const auto proved = prove(make_interleaved_zero_bubble({.size = {P, v, M}}));
                EXPECT_EQ(proved.facts.num_computing, int64_t{3} * P * v * M);
                for (int peak : proved.facts.peak_in_flight) EXPECT_LE(peak, v * std::min(P, M)) << P << v << M;
            }
        }
    }
}

// With one microbatch nothing overlaps but the W: all F, all I, and rank 0's last W.
TEST(InterleavedZeroBubble, OneMicrobatchPassesTheChain) {
    EXPECT_EQ(prove(make_interleaved_zero_bubble({.size = {4, 3, 1}})).simulation.makespan, 12 + 12 + 1);
}

TEST(InterleavedZeroBubble, GroupsThatCannotBeAreRefused) {
    const std::string text = testing::error_text(ErrorKind::Plan, [] {
        make_interleaved_zero_bubble({.size = {4, 2, 8}, .interleave_group = 9});
    });
    EXPECT_CONTAINS(text, "INTERLEAVED_ZERO_BUBBLE cannot walk in groups of that many microbatches");
    EXPECT_CONTAINS(text, "try interleave_group_size = 8");
}

}  // namespace
}  // namespace vpp
