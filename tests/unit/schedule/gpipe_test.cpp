#include "schedule/gpipe.hpp"

#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

using testing::prove;
using testing::texts;

TEST(Gpipe, TwoRanksFourMicrobatches) {
    const Schedule schedule = make_gpipe({2, 1, 4});
    EXPECT_EQ(schedule.name, "GPIPE");
    EXPECT_EQ(schedule.rank_of_stage, (std::vector<int>{0, 1}));
    EXPECT_EQ(texts(schedule), (std::vector<std::string>{"0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3",  //
                                                         "1F0 1F1 1F2 1F3 1B0 1B1 1B2 1B3"}));
}

TEST(Gpipe, BubbleAndPeakAreTheClosedForms) {
    for (int P = 1; P <= 8; ++P) {
        for (int M : {1, 2, P, 2 * P, 4 * P}) {
            const auto proved = prove(make_gpipe({P, 1, M}));
            EXPECT_EQ(proved.simulation.makespan, 3 * M + 3 * (P - 1)) << P << ' ' << M;
            EXPECT_EQ(proved.facts.peak_in_flight, std::vector<int>(static_cast<size_t>(P), M)) << P << ' ' << M;
        }
    }
}

TEST(Gpipe, OneStageOnEachRankOnly) {
    const std::string text = testing::error_text(ErrorKind::Plan, [] { make_gpipe({2, 2, 4}); });
    EXPECT_CONTAINS(text, "try virtual_chunks = 1");
}

}  // namespace
}  // namespace vpp
