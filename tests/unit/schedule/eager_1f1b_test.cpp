#include "schedule/eager_1f1b.hpp"

#include "schedule/one_f_one_b.hpp"
#include "unit/schedule/closed_forms.hpp"

namespace vpp {
namespace {

using testing::texts;

Schedule eager_of(const ScheduleRequest& request) {
    return make_eager_1f1b(request.size);
}

TEST(Eager1f1b, ThreeRanksSixMicrobatchesByHand) {
    const Schedule schedule = make_eager_1f1b({3, 1, 6});
    EXPECT_EQ(schedule.name, "EAGER_1F1B");
    EXPECT_EQ(texts(schedule), (std::vector<std::string>{
                                   "0F0 0F1 0F2 0F3 0F4 0B0 0F5 0B1 0B2 0B3 0B4 0B5",
                                   "1F0 1F1 1F2 1B0 1F3 1B1 1F4 1B2 1F5 1B3 1B4 1B5",
                                   "2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3 2F4 2B4 2F5 2B5",
                               }));
}

TEST(Eager1f1b, FewerMicrobatchesThanRanks) {
    EXPECT_EQ(texts(make_eager_1f1b({4, 1, 2})),
              (std::vector<std::string>{"0F0 0F1 0B0 0B1", "1F0 1F1 1B0 1B1", "2F0 2F1 2B0 2B1", "3F0 3B0 3F1 3B1"}));
}

TEST(Eager1f1b, BubbleAndPeakAreTheClosedForms) {
    const testing::ClosedForms forms{testing::fused_bubble, testing::fused_bubble,
                                     [](const ScheduleSize& size, int rank) {
                                         return std::min(2 * (size.num_ranks - 1 - rank) + 1, size.num_microbatches);
                                     }};
    for (const ScheduleSize& size : testing::closed_form_sizes(1, 1, [](int) { return 1; })) {
        testing::expect_closed_forms(eager_of, {.size = size}, forms);
    }
}

// Up to 2c = T_F + T_B a transfer there and back hides behind a pair of actions; beyond it shows in every pair.
TEST(Eager1f1b, TransfersAddTwoHopsForEachRankOnly) {
    const StageCosts stage{4, 6, 3, 3};
    for (int P = 2; P <= 9; ++P) {
        for (int M : {1, P, 3 * P}) {
            const Schedule schedule = make_eager_1f1b({P, 1, M});
            for (Ticks transfer : {1, 3, 5}) {
                const testing::Growth growth = testing::growth_by_transfers(schedule, stage, transfer);
                EXPECT_EQ(growth.makespan, 2 * (P - 1) * transfer) << P << ' ' << M;
                EXPECT_EQ(growth.span, growth.makespan) << P << ' ' << M;
            }
        }
        const testing::Growth slow = testing::growth_by_transfers(make_eager_1f1b({P, 1, 3 * P}), stage, 6);
        EXPECT_GT(slow.makespan, 2 * (P - 1) * 6) << P;
    }
    // Where 1F1B pays for them again and again.
    EXPECT_EQ(testing::growth_by_transfers(make_one_f_one_b({4, 1, 8}), {10, 20, 10, 10}, 1).makespan, 16);
    EXPECT_EQ(testing::growth_by_transfers(make_eager_1f1b({4, 1, 8}), {10, 20, 10, 10}, 1).makespan, 6);
}

TEST(Eager1f1b, OneStageOnEachRankOnly) {
    const std::string text = testing::error_text(ErrorKind::Plan, [] { make_eager_1f1b({2, 2, 4}); });
    EXPECT_CONTAINS(text, "EAGER_1F1B puts one stage on each rank (got virtual_chunks = 2");
    EXPECT_CONTAINS(text, "schedule_type = \"INTERLEAVED_1F1B\"");
}

}  // namespace
}  // namespace vpp
