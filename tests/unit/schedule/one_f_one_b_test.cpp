#include "schedule/one_f_one_b.hpp"

#include "unit/schedule/closed_forms.hpp"

namespace vpp {
namespace {

using testing::texts;

Schedule make_1f1b(const ScheduleRequest& request) {
    return make_one_f_one_b(request.size);
}

TEST(OneFOneB, TwoRanksFourMicrobatches) {
    const Schedule schedule = make_one_f_one_b({2, 1, 4});
    EXPECT_EQ(schedule.name, "1F1B");
    EXPECT_EQ(texts(schedule), (std::vector<std::string>{"0F0 0F1 0B0 0F2 0B1 0F3 0B2 0B3",  //
                                                         "1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3"}));
}

TEST(OneFOneB, FourRanksEightMicrobatches) {
    EXPECT_EQ(texts(make_one_f_one_b({4, 1, 8})), (std::vector<std::string>{
                                                      "0F0 0F1 0F2 0F3 0B0 0F4 0B1 0F5 0B2 0F6 0B3 0F7 0B4 0B5 0B6 0B7",
                                                      "1F0 1F1 1F2 1B0 1F3 1B1 1F4 1B2 1F5 1B3 1F6 1B4 1F7 1B5 1B6 1B7",
                                                      "2F0 2F1 2B0 2F2 2B1 2F3 2B2 2F4 2B3 2F5 2B4 2F6 2B5 2F7 2B6 2B7",
                                                      "3F0 3B0 3F1 3B1 3F2 3B2 3F3 3B3 3F4 3B4 3F5 3B5 3F6 3B6 3F7 3B7",
                                                  }));
}

TEST(OneFOneB, FewerMicrobatchesThanRanks) {
    EXPECT_EQ(texts(make_one_f_one_b({4, 1, 2})),
              (std::vector<std::string>{"0F0 0F1 0B0 0B1", "1F0 1F1 1B0 1B1", "2F0 2F1 2B0 2B1", "3F0 3B0 3F1 3B1"}));
}

TEST(OneFOneB, BubbleAndPeakAreTheClosedForms) {
    const testing::ClosedForms forms{
        testing::fused_bubble, testing::fused_bubble,
        [](const ScheduleSize& size, int rank) { return std::min(size.num_ranks - rank, size.num_microbatches); }};
    for (const ScheduleSize& size : testing::closed_form_sizes(1, 1, [](int) { return 1; })) {
        testing::expect_closed_forms(make_1f1b, {.size = size}, forms);
    }
}

// The growth by transfers is measured, not a closed form; these two are the published ones for c = 0.1.
TEST(OneFOneB, TransfersAreExposedInEverySteadyPair) {
    const StageCosts stage{10, 20, 10, 10};
    EXPECT_EQ(testing::growth_by_transfers(make_one_f_one_b({4, 1, 8}), stage, 1).makespan, 16);
    EXPECT_EQ(testing::growth_by_transfers(make_one_f_one_b({8, 1, 16}), stage, 1).makespan, 40);
}

TEST(OneFOneB, OneStageOnEachRankOnly) {
    const std::string text = testing::error_text(ErrorKind::Plan, [] { make_one_f_one_b({2, 2, 4}); });
    EXPECT_CONTAINS(text, "schedule_type = \"INTERLEAVED_1F1B\"");
}

}  // namespace
}  // namespace vpp
