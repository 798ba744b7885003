#include "schedule/v_shape.hpp"

#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

TEST(VShape, StagesGoDownTheRanksAndUpAgain) {
    const Schedule schedule = make_empty_v({3, 2, 4}, "X");
    EXPECT_EQ(schedule.rank_of_stage, (std::vector<int>{0, 1, 2, 2, 1, 0}));
    EXPECT_EQ(schedule.num_microbatches, 4);
    for (int rank = 0; rank < 3; ++rank) {
        EXPECT_EQ(schedule.stages_of(rank),
                  (std::vector<int>{stage_on(Leg::Down, 3, rank), stage_on(Leg::Up, 3, rank)}));
    }
}

TEST(VShape, OtherNumbersOfStagesAreRefused) {
    EXPECT_NO_THROW(check_two_stages_per_rank({3, 2, 4}, "X"));
    EXPECT_EQ(testing::error_text(ErrorKind::Plan,
                                  [] {
                                      check_two_stages_per_rank({3, 1, 4}, "X");
                                  }),
              "X puts two stages on each rank (got virtual_chunks = 1, expected 2); try virtual_chunks = 2");
    EXPECT_CONTAINS(testing::error_text(ErrorKind::Plan,
                                        [] {
                                            check_two_stages_per_rank({3, 3, 4}, "X");
                                        }),
                    "got virtual_chunks = 3");
}

TEST(VListWriter, EveryActionTakesTheNextMicrobatchOfItsStage) {
    VListWriter writer({3, 2, 2}, 1);
    writer.add_paired_forward(Leg::Down);
    writer.add(ActionKind::F, Leg::Up);
    writer.add(ActionKind::B, Leg::Up);
    writer.add(ActionKind::F, Leg::Up);
    writer.add(ActionKind::I, Leg::Up);
    writer.add(ActionKind::W, Leg::Up);
    writer.add(ActionKind::I, Leg::Down);
    EXPECT_EQ(writer.count(ActionKind::I, Leg::Up), 2);
    EXPECT_EQ(writer.count(ActionKind::W, Leg::Up), 2);
    EXPECT_EQ(writer.count(ActionKind::W, Leg::Down), 0);
    EXPECT_EQ(to_text(writer.take()), "1F0& 4F0 4B0 4F1 4I1 4W1 1I0");
}

TEST(VListWriter, MicrobatchesBeyondTheLastAreCountedAndLeftOut) {
    VListWriter writer({3, 2, 1}, 0);
    for (int i = 0; i < 3; ++i) writer.add(ActionKind::F, Leg::Down);
    EXPECT_EQ(writer.count(ActionKind::F, Leg::Down), 3);
    EXPECT_EQ(to_text(writer.take()), "0F0");
}

}  // namespace
}  // namespace vpp
