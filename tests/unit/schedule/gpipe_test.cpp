#include "schedule/gpipe.hpp"

#include "unit/schedule/closed_forms.hpp"

namespace vpp {
namespace {

using testing::texts;

Schedule gpipe_of(const ScheduleRequest& request) {
    return make_gpipe(request.size);
}

TEST(Gpipe, TwoRanksFourMicrobatches) {
    const Schedule schedule = make_gpipe({2, 1, 4});
    EXPECT_EQ(schedule.name, "GPIPE");
    EXPECT_EQ(schedule.rank_of_stage, (std::vector<int>{0, 1}));
    EXPECT_EQ(texts(schedule), (std::vector<std::string>{"0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3",  //
                                                         "1F0 1F1 1F2 1F3 1B0 1B1 1B2 1B3"}));
}

TEST(Gpipe, BubbleAndPeakAreTheClosedForms) {
    const testing::ClosedForms forms{testing::fused_bubble, testing::fused_bubble,
                                     [](const ScheduleSize& size, int) { return size.num_microbatches; }};
    for (const ScheduleSize& size : testing::closed_form_sizes(1, 1, [](int) { return 1; })) {
        testing::expect_closed_forms(gpipe_of, {.size = size}, forms);
    }
}

TEST(Gpipe, TransfersAddTwoHopsForEachRank) {
    for (int P = 2; P <= 9; ++P) {
        for (int M : {1, P, 3 * P}) {
            for (Ticks transfer : {1, 7, 50}) {
                const auto growth = testing::growth_by_transfers(make_gpipe({P, 1, M}), {4, 6, 3, 3}, transfer);
                EXPECT_EQ(growth.makespan, 2 * (P - 1) * transfer) << P << ' ' << M;
            }
        }
    }
}

TEST(Gpipe, OneStageOnEachRankOnly) {
    const std::string text = testing::error_text(ErrorKind::Plan, [] { make_gpipe({2, 2, 4}); });
    EXPECT_CONTAINS(text, "try virtual_chunks = 1");
}

}  // namespace
}  // namespace vpp
