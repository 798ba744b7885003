#include "schedule/csv.hpp"
#include "schedule/custom.hpp"
#include "schedule/generators.hpp"
#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

TEST(ToCsv, AFileIsWrittenAsItWasRead) {
    for (const char* text : {"0F0,0F1,0B0,0B1\n", "0F0,,,0B0,\n,1F0,1B0\n", ",,0F0,0B0,,\n", ",0F0,,0B0\n",
                             "0F0,(0F1;0B0)OVERLAP_F_B,,0B1\n", "0F0,0I0,,0W0,0REDUCE_GRAD\n",
                             "0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0<0,1F0,1B0,1SEND_B0>0\n"}) {
        EXPECT_EQ(to_csv(read_schedule_csv(text, "s.csv")), text);
    }
}

TEST(ToCsv, DroppedCellsLeaveNoTrace) {
    EXPECT_EQ(to_csv(read_schedule_csv("0UNSHARD,0F0,,0B0,0RESHARD\r\n", "s.csv")), "0F0,,0B0\n");
    EXPECT_EQ(to_csv(read_schedule_csv(" 0F0 ,0SEND_F0,,0RECV_B0,0B0\n,1RECV_F0,1F0,1B0,1SEND_B0", "s.csv")),
              "0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n");
}

TEST(ToCsv, GeneratedSchedulesComeBackAsTheyWere) {
    for (const ScheduleKind& kind : schedule_kinds()) {
        for (int ranks : {1, 2, 4}) {
            for (int microbatches : {8, 11}) {
                ScheduleRequest request{.size = {ranks, kind.fewest_per_rank, microbatches}};
                Schedule compute;
                try {
                    compute = make_schedule(kind.name, request);
                } catch (const Error&) {
                    continue;  // a size that this kind does not take
                }
                const std::vector<ScheduleEdge> edges = chain_edges(compute.num_stages());
                const Schedule lowered = lower(compute, edges);
                const ScheduleFile plain = read_schedule_csv(to_csv(compute), "s.csv");
                EXPECT_EQ(plain.schedule.actions, compute.actions) << kind.name;
                EXPECT_EQ(plain.schedule.rank_of_stage, compute.rank_of_stage) << kind.name;
                EXPECT_EQ(plain.schedule.forward_only, compute.forward_only) << kind.name;
                const ScheduleFile full = read_schedule_csv(to_csv(lowered), "s.csv");
                EXPECT_EQ(full.is_lowered, ranks > 1) << kind.name;
                EXPECT_EQ(prove_schedule_file(full, edges).lowered.actions, lowered.actions) << kind.name;
                EXPECT_EQ(prove_schedule_file(plain, edges).lowered.actions, lowered.actions) << kind.name;
            }
        }
    }
}

// Stage 0 -> 1, 0 -> 2 and 0 -> 3; stages 1 and 3 on rank 1, stage 2 on rank 2.
TEST(ToCsv, TransfersNameTheRankWhereAStageHasSeveral) {
    const std::vector<ScheduleEdge> edges{{0, 0, 1, false, 0}, {1, 0, 2, false, 0}, {2, 0, 3, false, 0}};
    Schedule schedule{"CUSTOM", 3, 1, {0, 1, 2, 1}, {}, false};
    schedule.actions = {{{ActionKind::F, 0, 0}, {ActionKind::B, 0, 0}},
                        {{ActionKind::F, 1, 0}, {ActionKind::B, 1, 0}, {ActionKind::F, 3, 0}, {ActionKind::B, 3, 0}},
                        {{ActionKind::F, 2, 0}, {ActionKind::B, 2, 0}}};
    const std::string text = to_csv(lower(schedule, edges));
    EXPECT_EQ(text,
              "0F0,0SEND_F0>1,0SEND_F0>2,0B0\n"
              "1RECV_F0,1F0,1B0,3RECV_F0,3F0,3B0\n"
              "2RECV_F0,2F0,2B0\n");
    const Schedule again = prove_schedule_file(read_schedule_csv(text, "s.csv"), edges).lowered;
    EXPECT_EQ(to_text(again.actions[0]), "0F0 0SEND_F0>1 0SEND_F0>1 0SEND_F0>2 0B0");
    EXPECT_EQ(to_csv(again), text);
}

}  // namespace
}  // namespace vpp
