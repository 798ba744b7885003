#include "schedule/dualpipe_v.hpp"

#include <algorithm>

#include "unit/schedule/v_support.hpp"

namespace vpp {
namespace {

using testing::prove;
using testing::texts;

// Laid by hand from the eight phases; rank 0 is also the first row of PyTorch's dualpipev_4rank_10mb.csv.
TEST(DualPipeV, FourRanksTenMicrobatches) {
    const Schedule schedule = make_dualpipe_v({4, 2, 10});
    EXPECT_EQ(schedule.name, "DUALPIPE_V");
    EXPECT_EQ(texts(schedule)[0],
              "0F0 0F1 0F2 0F3 0F4 0F5 0F6 7F0 "                        // 6 Fa, then [Fa, Fb]
              "7I0 7W0 7F1 7I1 7W1 7F2 7I2 7W2 7F3 "                    // 3 [Ib, W, Fb]
              "0F7& 7B3 7F4& 0B0 0F8& 7B4 7F5& 0B1 0F9& 7B5 7F6& 0B2 "  // 3 [Fa & Bb, Fb & Ba]
              "7B6 7F7& 0B3 7B7 7F8& 0B4 7B8 7F9& 0B5 "                 // 3 [Bb, Fb & Ba]
              "7B9 0I6 "                                                // turned before Ba
              "0W6 0I7 0W7 0I8 0W8 0I9 0W9");                           // 3 [W, Ia], W
    EXPECT_EQ(texts(schedule)[3],
              "3F0 4F0 3F1 4F1 3F2 4F2 3F3 4F3 "  // 4 [Fa, Fb]
              "3F4 4B0 4F4& 3B0 "                 // no pair at first
              "3F5& 4B1 4F5& 3B1 3F6& 4B2 4F6& 3B2 3F7& 4B3 4F7& 3B3 3F8& 4B4 4F8& 3B4 3F9& 4B5 4F9& 3B5 "
              "4B6 3B6 4B7 3B7 4I8 3I8 4I9 3I9 "  // turned before Bb at the third
              "4W8 3W8 4W9 3W9");
}

TEST(DualPipeV, OneRankHasBothStages) {
    EXPECT_EQ(texts(make_dualpipe_v({1, 2, 2}))[0], "0F0 1F0 0F1 1B0 1F1& 0B0 1B1 0I1 0W1");
}

TEST(DualPipeV, PairsAsOneActionHaveThePublishedBubble) {
    for (int P = 1; P <= 16; ++P) {
        for (int M : {2 * P, 2 * P + 1, 3 * P + 2, 4 * P}) {
            const auto proved = prove(make_dualpipe_v({P, 2, M}));
            EXPECT_EQ(proved.simulation.makespan, 6 * M + (P - 1) * (3 + 2 - 3)) << P << ' ' << M;
            for (int peak : proved.facts.peak_in_flight) EXPECT_EQ(peak, 2 * P + 1) << P << ' ' << M;
        }
    }
}

TEST(DualPipeV, HalvesOneAfterTheOtherHaveHalfOfIt) {
    for (int P = 1; P <= 16; ++P) {
        for (int M : {2 * P, 2 * P + 1, 4 * P}) {
            Schedule schedule = make_dualpipe_v({P, 2, M});
            for (std::vector<Action>& list : schedule.actions) {
                for (Action& action : list) action.paired = false;
            }
            EXPECT_EQ(prove(schedule).simulation.makespan, 6 * M + P - 1) << P << ' ' << M;
        }
    }
}

// Every rank works in pairs for another time, so the bubble of the formula is that of the rank that waits longest.
TEST(DualPipeV, OverlapShortensTheBubbleAsPublished) {
    for (int P = 1; P <= 8; ++P) {
        for (int percent : {50, 100}) {
            ScheduleCosts costs;
            costs.stages.assign(static_cast<size_t>(2 * P), {10, 20, 10, 10});
            costs.overlap_percent = percent;
            const Simulation simulation = prove(make_dualpipe_v({P, 2, 3 * P}), costs).simulation;
            const Ticks pair = 30 - percent / 10;
            Ticks longest = 0;
            for (Ticks busy : simulation.busy) longest = std::max(longest, simulation.makespan - busy);
            EXPECT_EQ(longest, (P - 1) * (pair + 20 - 30)) << P << ' ' << percent;
        }
    }
}

TEST(DualPipeV, RandomShapesAreProved) {
    testing::expect_random_shapes_proved("DUALPIPE_V", 2, 300);
}

TEST(DualPipeV, PairsAreAForwardAndABackwardOfOneRank) {
    const Schedule schedule = make_dualpipe_v({5, 2, 13});
    for (size_t rank = 0; rank < schedule.actions.size(); ++rank) {
        const std::vector<Action>& list = schedule.actions[rank];
        int num_pairs = 0;
        for (size_t i = 0; i < list.size(); ++i) {
            if (!list[i].paired) continue;
            ++num_pairs;
            EXPECT_EQ(list[i].kind, ActionKind::F);
            ASSERT_LT(i + 1, list.size());
            EXPECT_EQ(list[i + 1].kind, ActionKind::B);
            EXPECT_NE(list[i + 1].stage, list[i].stage);
        }
        const int steady = 13 - 10 + static_cast<int>(rank) + 1;
        EXPECT_EQ(num_pairs, 2 * steady + (4 - static_cast<int>(rank)) - (rank == 4 ? 1 : 0));
    }
}

TEST(DualPipeV, FewerMicrobatchesThanTwoARankAreRefused) {
    EXPECT_EQ(testing::error_text(ErrorKind::Plan,
                                  [] {
                                      make_dualpipe_v({4, 2, 7});
                                  }),
              "DUALPIPE_V needs two microbatches for each rank (got num_microbatches = 7 for 4 ranks, expected at "
              "least 8); try num_microbatches = 8 or schedule_type = \"ZERO_BUBBLE_V\"");
    EXPECT_CONTAINS(testing::error_text(ErrorKind::Plan,
                                        [] {
                                            make_dualpipe_v({1, 2, 1});
                                        }),
                    "= 1 for 1 rank, expected");
    EXPECT_CONTAINS(testing::error_text(ErrorKind::Plan, [] { make_dualpipe_v({4, 4, 8}); }), "try virtual_chunks = 2");
}

}  // namespace
}  // namespace vpp
