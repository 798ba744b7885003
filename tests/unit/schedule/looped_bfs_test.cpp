#include "schedule/looped_bfs.hpp"

#include "schedule/gpipe.hpp"
#include "unit/schedule/closed_forms.hpp"

namespace vpp {
namespace {

using testing::texts;

Schedule looped_bfs_of(const ScheduleRequest& request) {
    return make_looped_bfs(request.size);
}

const testing::ClosedForms kForms{testing::fused_bubble, testing::fused_bubble, [](const ScheduleSize& size, int) {
                                      return size.num_microbatches * size.stages_per_rank;
                                  }};

TEST(LoopedBfs, TwoRanksTwoStagesThreeMicrobatchesByHand) {
    const Schedule schedule = make_looped_bfs({2, 2, 3});
    EXPECT_EQ(schedule.name, "LOOPED_BFS");
    EXPECT_EQ(schedule.rank_of_stage, (std::vector<int>{0, 1, 0, 1}));
    EXPECT_EQ(texts(schedule), (std::vector<std::string>{"0F0 0F1 0F2 2F0 2F1 2F2 2B0 2B1 2B2 0B0 0B1 0B2",
                                                         "1F0 1F1 1F2 3F0 3F1 3F2 3B0 3B1 3B2 1B0 1B1 1B2"}));
}

TEST(LoopedBfs, OneStageOnEachRankIsGpipe) {
    for (int P : {1, 2, 5}) {
        for (int M : {1, 4, 7}) EXPECT_EQ(make_looped_bfs({P, 1, M}).actions, make_gpipe({P, 1, M}).actions);
    }
}

TEST(LoopedBfs, BubbleAndPeakAreTheClosedForms) {
    for (const ScheduleSize& size : testing::closed_form_sizes(1, 4, [](int P) { return P; })) {
        testing::expect_closed_forms(looped_bfs_of, {.size = size}, kForms);
    }
    for (const ScheduleSize& size : testing::closed_form_sizes(1, 1, [](int) { return 1; })) {
        testing::expect_closed_forms(looped_bfs_of, {.size = size}, kForms);
    }
}

// One microbatch passes the chain alone; three of four wait P - M for each turn of the loop, there and back.
TEST(LoopedBfs, FewerMicrobatchesThanRanksWork) {
    EXPECT_EQ(testing::prove(make_looped_bfs({4, 2, 1})).simulation.makespan, 24);
    EXPECT_EQ(testing::prove(make_looped_bfs({4, 2, 3})).simulation.makespan, 3 * 3 * 2 + 3 * 3 + 3 * (4 - 3));
}

TEST(LoopedBfs, TransfersAddTwoHopsForEachRankWhereTheyHide) {
    const StageCosts stage{4, 6, 3, 3};
    for (int P = 2; P <= 6; ++P) {
        for (int v = 1; v <= 3; ++v) {
            // The first microbatch is back after P hops of c; until then there are M - P others to work on.
            const auto growth = [&](int M) {
                return testing::growth_by_transfers(make_looped_bfs({P, v, M}), stage, 4).makespan;
            };
            EXPECT_EQ(growth(2 * P), 2 * (P - 1) * 4) << P << ' ' << v;
            if (v > 1) {
                EXPECT_GT(growth(2 * P - 1), 2 * (P - 1) * 4) << P << ' ' << v;
            }
        }
    }
}

}  // namespace
}  // namespace vpp
