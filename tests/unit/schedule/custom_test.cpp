#include "schedule/custom.hpp"

#include "schedule/generators.hpp"
#include "schedule/tied_order.hpp"
#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

ProvedSchedule prove_text(const std::string& text, const std::vector<ScheduleEdge>& edges) {
    return prove_schedule_file(read_schedule_csv(text, "s.csv"), edges);
}

std::string custom_refusal(const std::string& text, const std::vector<ScheduleEdge>& edges) {
    return testing::error_text(ErrorKind::BadData, [&] { prove_text(text, edges); });
}

constexpr const char* kLowered =
    "0F0,0SEND_F0,0RECV_B0,0B0\n"
    "1RECV_F0,1F0,1B0,1SEND_B0\n";

TEST(ProveScheduleFile, ComputingActionsAreLowered) {
    const ProvedSchedule proved = prove_text("0F0,,0B0\n,1F0,1B0\n", chain_edges(2));
    EXPECT_EQ(to_text(proved.lowered.actions[0]), "0F0 0SEND_F0>1 0RECV_B0<1 0B0");
    EXPECT_EQ(proved.facts.num_messages, 2);
}

// As a training orders them where a send waits for its receive; by default 1F1B would stand still there.
TEST(ProveScheduleFile, ComputingActionsAreLoweredForSendsThatWait) {
    const ScheduleFile file = read_schedule_csv(to_csv(make_schedule("1F1B", 2, 1, 3)), "s.csv");
    const ProvedSchedule proved = prove_schedule_file(file, chain_edges(2), {.rendezvous = true});
    EXPECT_EQ(proved.facts.num_messages, 6);
    EXPECT_NE(proved.lowered.actions, prove_schedule_file(file, chain_edges(2)).lowered.actions);
}

TEST(ProveScheduleFile, LoweredFilesAreTakenAsTheyAre) {
    EXPECT_EQ(prove_text(kLowered, chain_edges(2)).lowered.actions,
              prove_text("0F0,0B0\n1F0,1B0\n", chain_edges(2)).lowered.actions);
}

TEST(ProveScheduleFile, ACellStandsForAllEdgesToItsRank) {
    const std::vector<ScheduleEdge> two{{4, 0, 1, true, 0}, {7, 0, 1, true, 0}};
    const ProvedSchedule proved = prove_text(kLowered, two);
    EXPECT_EQ(proved.facts.num_messages, 4);
    EXPECT_EQ(proved.lowered.actions[0][1].edge, 4);
    EXPECT_EQ(proved.lowered.actions[0][2].edge, 7);
}

// The last stage uses a weight of the first one: files that are lowered without a model say nothing of that.
TEST(ProveScheduleFile, TransfersOfTiedGradientsAreAddedToLoweredFiles) {
    const auto tied_chain = [](int num_stages, int user) {
        std::vector<ScheduleEdge> edges = chain_edges(num_stages);
        edges.push_back({99, 0, user, true, 0, true});
        return edges;
    };
    const ProvedSchedule proved = prove_text(kLowered, tied_chain(2, 1));
    const std::vector<std::string> expected{"0F0 0SEND_F0>1 0RECV_B0<1 0RECV_B0<1 0B0",
                                            "1RECV_F0<0 1F0 1B0 1SEND_B0>0 1SEND_B0>0"};
    EXPECT_EQ(testing::texts(proved.lowered), expected);
    EXPECT_EQ(proved.lowered.actions[1].back().edge, 99);
    for (const ScheduleKind& kind : schedule_kinds()) {
        const int v = kind.fewest_per_rank;
        for (const int user : {4 * v / 2, 4 * v - 1}) {  // in a V the last stage is on the first one's rank
            const std::vector<ScheduleEdge> edges = tied_chain(4 * v, user);
            const Schedule compute = order_tied(make_schedule(kind.name, 4, v, 8), edges);
            const ProvedSchedule added = prove_text(to_csv(lower(compute, chain_edges(4 * v))), edges);
            EXPECT_EQ(added.facts.num_messages, check_schedule(lower(compute, edges), edges).num_messages) << kind.name;
        }
    }
}

// What is written of a schedule over a model with tied weights comes back as it was.
TEST(PartWithCells, TransfersOfTiedGradientsAreLeftOut) {
    const std::vector<ScheduleEdge> edges{{0, 0, 1, true, 0}, {1, 1, 2, true, 1}, {9, 0, 2, true, 0, true}};
    const Schedule lowered = lower(order_tied(make_schedule("ZERO_BUBBLE_H1", 3, 1, 4), edges), edges);
    const std::string text = to_csv(part_with_cells(lowered, edges));
    EXPECT_EQ(text.find(">0"), std::string::npos);
    EXPECT_EQ(prove_text(text, edges).lowered.actions, lowered.actions);
    EXPECT_EQ(part_with_cells(lowered, chain_edges(3)).actions, lowered.actions);
}

TEST(ProveScheduleFile, TheRankIsNamedWhereThereAreSeveral) {
    const std::vector<ScheduleEdge> skip{{0, 0, 1, false, 0}, {1, 0, 2, false, 0}, {2, 1, 2, false, 1}};
    const std::string rest = "1RECV_F0,1F0,1SEND_F0,1B0\n2RECV_F0<0,2RECV_F0<1,2F0,2B0\n";
    EXPECT_EQ(prove_text("0F0,0SEND_F0>2,0SEND_F0>1,0B0\n" + rest, skip).facts.num_messages, 3);
    const std::string error = custom_refusal("0F0,0SEND_F0,0B0\n" + rest, skip);
    EXPECT_CONTAINS(error, "s.csv:1:2: cell 2 '0SEND_F0': the stage has transfers of this kind with ranks 1, 2");
    EXPECT_CONTAINS(error, "name the rank: 0SEND_F0>1,0SEND_F0>2");
}

TEST(ProveScheduleFile, TransfersThatCarryNothingAreNamed) {
    EXPECT_CONTAINS(custom_refusal("0F0,0SEND_F0,0SEND_B0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n", chain_edges(2)),
                    "s.csv:1:3: cell 3 '0SEND_B0': no gradient goes from stage 0 to another rank");
    EXPECT_CONTAINS(custom_refusal("0F0,0SEND_F0>0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n", chain_edges(2)),
                    "s.csv:1:2: cell 2 '0SEND_F0>0': no value goes from stage 0 to rank 0 (expected rank 1)");
    EXPECT_CONTAINS(custom_refusal("0F0,0SEND_F0,1RECV_F0,1F0,1B0,0B0\n", chain_edges(2)),
                    "'0SEND_F0': no value goes from stage 0 to another rank; what stays on a rank is handed over");
}

TEST(ProveScheduleFile, WhatTheCheckerFindsIsBadData) {
    EXPECT_CONTAINS(custom_refusal("0B0,0F0\n1F0,1B0\n", chain_edges(2)),
                    "s.csv: schedule CUSTOM: 0B0 comes before 0F0");
    EXPECT_CONTAINS(custom_refusal("0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1RECV_F0,1B0,1SEND_B0\n", chain_edges(2)),
                    "is received after it is used");
    EXPECT_CONTAINS(custom_refusal("0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n", chain_edges(2)), "has no SEND_F");
    EXPECT_CONTAINS(custom_refusal("0F0,0I0,0W0,0B0\n", chain_edges(1)), "B beside I or W");
}

// They are dropped before the proof, as lowering has its own.
TEST(ProveScheduleFile, ReductionsOfComputingFilesStandBehindTheirStage) {
    for (const char* sound : {"0F0,0B0,0REDUCE_GRAD\n1F0,1B0,1REDUCE_GRAD\n", "0F0,0B0\n1F0,1I0,1W0,1REDUCE_GRAD\n"}) {
        EXPECT_EQ(prove_text(sound, chain_edges(2)).facts.num_messages, 2) << sound;
    }
    const std::string several = "0F0,2F0,2B0,2REDUCE_GRAD,0B0,0REDUCE_GRAD\n1F0,1B0\n";
    EXPECT_EQ(prove_text(several, chain_edges(3)).facts.num_messages, 4);
    for (const char* early : {"0REDUCE_GRAD,0F0,0B0\n", "0REDUCE_GRAD,0F0,0I0,0W0\n"}) {
        EXPECT_CONTAINS(custom_refusal(early, chain_edges(1)),
                        "s.csv:1:1: cell 1 '0REDUCE_GRAD': it comes before the stage's last weight gradient");
    }
    EXPECT_CONTAINS(custom_refusal("0F0,0F1,0I0,0I1,0W0,0REDUCE_GRAD,0W1\n", chain_edges(1)), "s.csv:1:6: cell 6");
    EXPECT_CONTAINS(custom_refusal("0F0,0B0\n1F0,1B0,1REDUCE_GRAD,1REDUCE_GRAD\n", chain_edges(2)),
                    "s.csv:2:3: cell 3 '1REDUCE_GRAD': the stage has another behind it");
}

// As the old dialect's own examples: one rank writes B with W, the other BW, and idle cells stand in a computing file.
TEST(ProveScheduleFile, ConvertedFilesOfTheOldDialect) {
    const auto prove_any = [](const std::string& text) {
        const ScheduleFile file = read_any_schedule_csv(text, "s.csv");
        const ProvedSchedule proved = prove_schedule_file(file, chain_edges(2));
        EXPECT_EQ(prove_text(to_csv(file), chain_edges(2)).lowered.actions, proved.lowered.actions);
        return testing::texts(computing_part(proved.lowered));
    };
    const std::vector<std::string> expected{"0F0 0F1 0B0 0B1", "1F0 1I0 1F1 1I1 1W0 1W1"};
    EXPECT_EQ(prove_any("0F0,0F1,,,0BW0,0BW1\n,1F0,1B0,1F1,1B1,1W0,1W1\n"), expected);
    EXPECT_EQ(prove_any("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0BW0,0RECV_B1,0BW1\n"
                        "1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1W0,1W1\n"),
              expected);
    EXPECT_EQ(prove_any("0F0,0F1,,,0B0,0W0,0B1,0W1\n,1F0,1B0,1F1,1B1,1W0,1W1\n")[0], "0F0 0F1 0I0 0W0 0I1 0W1");
}

TEST(ComputingPart, LeavesWhatGeneratorsMake) {
    const Schedule full = prove_text(kLowered, chain_edges(2)).lowered;
    EXPECT_EQ(testing::texts(computing_part(full)), (std::vector<std::string>{"0F0 0B0", "1F0 1B0"}));
}

}  // namespace
}  // namespace vpp
