#include "schedule/v_half.hpp"

#include <set>

#include "unit/schedule/v_support.hpp"

namespace vpp {
namespace {

using testing::prove;
using testing::texts;

/// Start slots of Fa, Fb, Ib, Ia of every rank.
std::vector<std::vector<Ticks>> by_rank(const VBlock& block) {
    const size_t P = block.starts.size() / 4;
    std::vector<std::vector<Ticks>> slots;
    for (size_t r = 0; r < P; ++r) {
        slots.push_back(
            {block.starts[r], block.starts[2 * P - 1 - r], block.starts[2 * P + r], block.starts[4 * P - 1 - r]});
    }
    return slots;
}

// The slots that the paper draws for four ranks.
TEST(VBlocks, FourRanksAsPublished) {
    using Slots = std::vector<std::vector<Ticks>>;
    EXPECT_EQ(by_rank(v_min_block(4)), (Slots{{0, 7, 8, 15}, {1, 6, 9, 14}, {2, 5, 10, 13}, {3, 4, 11, 12}}));
    EXPECT_EQ(by_rank(v_half_block(4)), (Slots{{0, 10, 14, 25}, {2, 9, 16, 24}, {4, 8, 18, 23}, {6, 7, 20, 22}}));
}

TEST(VBlocks, RepeatWithoutCollisionAndInOrder) {
    for (int P = 1; P <= 64; ++P) {
        for (const VBlock& block : {v_half_block(P), v_min_block(P)}) {
            EXPECT_EQ(block.period, 6);
            for (const std::vector<Ticks>& slots : by_rank(block)) {
                std::set<Ticks> taken;
                for (Ticks slot : slots) taken.insert(slot % 6);
                EXPECT_EQ(taken.size(), 4U) << P;
            }
            for (size_t hop = 1; hop < block.starts.size(); ++hop) {
                EXPECT_LT(block.starts[hop - 1], block.starts[hop]) << P;
            }
        }
    }
}

// One microbatch fits into the memory, and at no cost in time its W come first.
TEST(VHalf, OneRankByHand) {
    const std::vector<std::string> list{"0F0 1F0 1I0 0I0 1W0 0W0 0F1 1F1 1I1 0I1 1W1 0W1"};
    EXPECT_EQ(texts(make_v_half({.size = {1, 2, 2}})), list);
    EXPECT_EQ(texts(make_v_min({.size = {1, 2, 2}})), list);
}

// 6M + 6P - 3k - 1 slots are the least for k stage activations (arXiv 2405.15362); V-Half meets it with odd P, V-Min
// where P leaves 1 divided by 3.
TEST(VHalf, EqualTimesStayAtTheBoundOfTheMemory) {
    for (int P = 2; P <= 16; ++P) {
        for (int M : {P, P + 1, 2 * P, 3 * P + 1, 4 * P}) {
            const int half = 2 * ((P + 2) / 2), third = 2 * ((P + 4) / 3);
            const auto v_half = prove(make_v_half({.size = {P, 2, M}})), v_min = prove(make_v_min({.size = {P, 2, M}}));
            const Ticks half_bubble = v_half.simulation.makespan - 6 * M,
                        min_bubble = v_min.simulation.makespan - 6 * M;
            SCOPED_TRACE(std::to_string(P) + " " + std::to_string(M));
            EXPECT_GE(half_bubble, 6 * P - 3 * half - 1);
            EXPECT_GE(min_bubble, 6 * P - 3 * third - 1);
            EXPECT_LE(half_bubble, P % 2 == 1 ? 3 * P - 4 : 3 * P - 3);
            EXPECT_LE(min_bubble, 4 * P - 5);
            if (P % 2 == 1) {
                EXPECT_EQ(half_bubble, 6 * P - 3 * half - 1);
            }
            if (P % 3 == 1) {
                EXPECT_EQ(min_bubble, 6 * P - 3 * third - 1);
            }
            EXPECT_EQ(*std::max_element(v_half.facts.peak_in_flight.begin(), v_half.facts.peak_in_flight.end()), half);
            EXPECT_EQ(*std::max_element(v_min.facts.peak_in_flight.begin(), v_min.facts.peak_in_flight.end()), third);
        }
    }
}

TEST(VHalf, FewMicrobatchesAndUnevenCostsKeepTheMemory) {
    for (int P = 1; P <= 9; ++P) {
        for (int M = 1; M <= 2 * P; ++M) {
            testing::Draws draws(static_cast<uint64_t>(100 * P + M));
            const ScheduleRequest request{.size = {P, 2, M}, .costs = testing::random_costs(2 * P, draws)};
            for (int peak : prove(make_v_half(request), request.costs).facts.peak_in_flight) {
                EXPECT_LE(peak, 2 * ((P + 2) / 2)) << P << ' ' << M;
            }
            for (int peak : prove(make_v_min(request), request.costs).facts.peak_in_flight) {
                EXPECT_LE(peak, 2 * ((P + 4) / 3)) << P << ' ' << M;
            }
        }
    }
}

/// What a microbatch more costs once the pipeline is full.
double steady_cost(Schedule (*make)(const ScheduleRequest&), const StageCosts& stage, int P) {
    ScheduleCosts costs;
    costs.stages.assign(static_cast<size_t>(2 * P), stage);
    const auto makespan = [&](int M) {
        return prove(make({.size = {P, 2, M}, .costs = costs}), costs).simulation.makespan;
    };
    return static_cast<double>(makespan(16 * P) - makespan(8 * P)) / (8 * P);
}

TEST(VHalf, SteadyStateHasNoBubbleUnderThePublishedConditions) {
    for (int P : {2, 3, 4, 5, 6, 8}) {
        for (const StageCosts& stage :
             {StageCosts{10, 20, 10, 10}, {12, 23, 13, 10}, {10, 24, 14, 10}, {9, 20, 8, 12}}) {
            const Ticks F = stage.forward, I = stage.input_gradient, W = stage.weight_gradient;
            ASSERT_TRUE(W + 2 * I >= 2 * F && W + 2 * F >= 2 * I);
            EXPECT_EQ(steady_cost(make_v_half, stage, P), static_cast<double>(2 * (F + I + W))) << P << ' ' << I;
        }
    }
}

TEST(VMin, OtherTimesCostABubbleForEveryMicrobatch) {
    EXPECT_EQ(steady_cost(make_v_min, {10, 20, 10, 10}, 7), 60);
    EXPECT_GT(steady_cost(make_v_min, {10, 24, 14, 10}, 7), 68);
}

TEST(VHalf, RandomShapesAreProved) {
    testing::expect_random_shapes_proved("V_HALF", 0, 200);
    testing::expect_random_shapes_proved("V_MIN", 0, 200);
}

TEST(VHalf, OneStageOnEachRankIsRefused) {
    EXPECT_CONTAINS(testing::error_text(ErrorKind::Plan,
                                        [] {
                                            make_v_half({.size = {2, 1, 4}});
                                        }),
                    "V_HALF puts two stages on each rank (got virtual_chunks = 1");
    EXPECT_CONTAINS(testing::error_text(ErrorKind::Plan,
                                        [] {
                                            make_v_min({.size = {2, 3, 4}});
                                        }),
                    "V_MIN puts two stages on each rank (got virtual_chunks = 3");
}

}  // namespace
}  // namespace vpp
