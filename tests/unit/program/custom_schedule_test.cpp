#include "program/custom_schedule.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "plan/reader.hpp"
#include "plan/rules.hpp"
#include "schedule/checker.hpp"
#include "schedule/edges.hpp"
#include "unit/plan/plan_texts.hpp"

namespace vpp {
namespace {

/// A plan of 2 ranks, `per_rank` stages each and 2 microbatches with this schedule file.
class CustomScheduleTest : public ::testing::Test {
  protected:
    void SetUp() override { std::filesystem::create_directories(folder_); }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    CustomSchedule read(const std::string& csv, int per_rank = 1, bool overlap = true, int dp = 1,
                        const std::vector<std::string>& others = {"mesh.pp=2"}) {
        std::ofstream(folder_ / "s.csv") << csv;
        std::vector<std::string> settings = others;
        for (const std::string& setting :
             {"mesh.dp=" + std::to_string(dp), std::string("pipeline.num_microbatches=2"),
              std::string("pipeline.schedule_type=CUSTOM"), std::string("pipeline.schedule_file=s.csv"),
              "pipeline.virtual_chunks=" + std::to_string(per_rank),
              std::string("pipeline.overlap_p2p_comm=") + (overlap ? "true" : "false")}) {
            settings.push_back(setting);
        }
        const Plan plan = resolve_plan(
            parse_plan(test::kShortPlan, (folder_ / "plan.toml").string(), settings, test::built_names()), 2 * dp);
        return read_custom_schedule(plan, chain_edges(2 * per_rank));
    }
    std::string refusal(ErrorKind kind, const std::string& csv, int per_rank = 1, bool overlap = true,
                        const std::vector<std::string>& others = {"mesh.pp=2"}) {
        try {
            read(csv, per_rank, overlap, 1, others);
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), kind) << error.what();
            return error.what();
        }
        ADD_FAILURE() << "no error was thrown";
        return "";
    }

    std::filesystem::path folder_ =
        std::filesystem::temp_directory_path() /
        ("vpp-custom-" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
};

TEST_F(CustomScheduleTest, IsLoweredAndProved) {
    const CustomSchedule custom = read("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
    EXPECT_EQ(custom.lowered.name, "CUSTOM");
    EXPECT_EQ(to_text(custom.lowered.actions[1]), "1RECV_F0<0 1F0 1B0 1SEND_B0>0 1RECV_F1<0 1F1 1B1 1SEND_B1>0");
    EXPECT_TRUE(custom.notes.empty());
    EXPECT_EQ(read("0F0,0F1,3F0,3F1,3B0,3B1,0B0,0B1\n1F0,1F1,2F0,2F1,2B0,2B1,1B0,1B1\n", 2).lowered.rank_of_stage,
              (std::vector<int>{0, 1, 1, 0}));
}

TEST_F(CustomScheduleTest, TransfersStayAndWhatTheEngineDoesItselfIsDropped) {
    const CustomSchedule custom = read(
        "0UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0RECV_B1,0B0,0B1,0REDUCE_GRAD\n"
        "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1,1REDUCE_GRAD,1RESHARD\n");
    EXPECT_EQ(to_text(custom.lowered.actions[0]), "0F0 0SEND_F0>1 0F1 0SEND_F1>1 0RECV_B0<1 0RECV_B1<1 0B0 0B1");
    ASSERT_EQ(custom.notes.size(), 1U);
    EXPECT_TRUE(test::holds(custom.notes[0], "dropped 2 cells of UNSHARD and RESHARD"));
}

TEST_F(CustomScheduleTest, ReplicasReduceWhereTheFileSaysOrBehindEachStage) {
    const std::string own = "0F0,0F1,0B0,0B1,0REDUCE_GRAD\n1F0,1B0,1F1,1B1,1REDUCE_GRAD\n";
    for (const std::string& file : {own, std::string("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n")}) {
        const CustomSchedule custom = read(file, 1, /*overlap=*/true, /*dp=*/2);
        EXPECT_EQ(to_text(custom.lowered.actions[1]),
                  "1RECV_F0<0 1F0 1B0 1SEND_B0>0 1RECV_F1<0 1F1 1B1 1SEND_B1>0 1REDUCE_GRAD");
    }
}

// The second value of rank 0 would wait for a receive that stands behind a gradient, which waits for rank 0.
TEST_F(CustomScheduleTest, WithoutOverlapTransfersNeedOneOrder) {
    const std::string compute = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n";
    const CustomSchedule ordered = read(compute, 1, /*overlap=*/false);
    EXPECT_NO_THROW(check_schedule(ordered.lowered, chain_edges(2), {.rendezvous = true}));
    EXPECT_THROW(check_schedule(read(compute).lowered, chain_edges(2), {.rendezvous = true}), Error);
    const std::string crossed =
        "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
        "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n";
    EXPECT_NO_THROW(read(crossed));
    const std::string text = refusal(ErrorKind::Plan, crossed, 1, /*overlap=*/false);
    EXPECT_TRUE(test::holds(text, "only work beside each other")) << text;
    EXPECT_TRUE(test::holds(text, "try pipeline.overlap_p2p_comm = true")) << text;
}

TEST_F(CustomScheduleTest, NumbersMustFitThePlan) {
    EXPECT_TRUE(test::holds(refusal(ErrorKind::Plan, "0F0,0F1,0B0,0B1\n"),
                            "s.csv has 1 rank (expected 2, as mesh.pp says); try mesh.pp = 1"));
    EXPECT_TRUE(test::holds(refusal(ErrorKind::Plan, "0F0,0B0\n1F0,1B0\n"),
                            "s.csv has 1 microbatch (expected 2, as pipeline.num_microbatches says); try "
                            "pipeline.num_microbatches = 1"));
    EXPECT_TRUE(test::holds(refusal(ErrorKind::Plan, "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n", 2),
                            "s.csv has 1 stage on rank 0 (expected 2, as pipeline.virtual_chunks says); try "
                            "pipeline.virtual_chunks = 1"));
}

TEST_F(CustomScheduleTest, TheRemedyNamesTheKeyOfThePlan) {
    const std::vector<std::string> two = {"pipeline.num_stages=2"}, beside_mesh = {two[0], "mesh.threads=1"};
    for (const auto& written : {two, beside_mesh}) {
        EXPECT_TRUE(test::holds(refusal(ErrorKind::Plan, "0F0,0F1,0B0,0B1\n", 1, true, written),
                                "has 1 rank (expected 2, as pipeline.num_stages says); try pipeline.num_stages = 1"));
    }
}

// No number of virtual_chunks fits them.
TEST_F(CustomScheduleTest, RanksWithDifferentNumbersOfStagesAreNamed) {
    const std::string uneven = "0F0,0F1,0B0,0B1\n1F0,1F1,2F0,2F1,3F0,3F1,3B0,3B1,2B0,2B1,1B0,1B1\n";
    for (const int per_rank : {1, 2, 3}) {
        EXPECT_TRUE(test::holds(refusal(ErrorKind::Plan, uneven, per_rank),
                                "s.csv puts different numbers of stages on its ranks (got 1 stage on rank 0 and 3 "
                                "stages on rank 1); a plan needs the same number on each"));
    }
}

TEST_F(CustomScheduleTest, HalvesAndPairsTrainForwardsAloneDoNot) {
    EXPECT_EQ(to_text(read("0F0,0F1,0I0,0W0,0B1\n1F0,1B0,1F1,1B1\n").lowered.actions[0]),
              "0F0 0SEND_F0>1 0F1 0SEND_F1>1 0RECV_B0<1 0I0 0W0 0RECV_B1<1 0B1");
    EXPECT_EQ(to_text(read("0F0,0F1,0B0,0B1\n1F0,(1F1;1B0)OVERLAP_F_B,1B1\n").lowered.actions[1]),
              "1RECV_F0<0 1F0 1RECV_F1<0 1F1& 1B0 1SEND_B0>0 1B1 1SEND_B1>0");
    EXPECT_TRUE(test::holds(refusal(ErrorKind::Plan, "0F0,0F1\n1F0,1F1\n"),
                            "s.csv has no backward (expected a schedule that trains)"));
    EXPECT_TRUE(test::holds(
        refusal(ErrorKind::Plan, "0F0,0F1\n1F0,1F1\n", 1, true, {"mesh.pp=2", "pipeline.forward_only=true"}),
        "s.csv has no backward (expected a schedule that trains, as a plan with pipeline.forward_only = true needs "
        "too, "
        "though vpp eval does not run it)"));
}

TEST_F(CustomScheduleTest, ABadFileIsBadData) {
    EXPECT_TRUE(test::holds(refusal(ErrorKind::BadData, "0F0,0F1,0B0,0B1\n1F0,1X0\n"), "s.csv:2:2: cell 2 '1X0'"));
    EXPECT_TRUE(test::holds(refusal(ErrorKind::BadData, "0F0,0BW0\n"), "vpp schedule convert"));
    EXPECT_TRUE(test::holds(refusal(ErrorKind::BadData, "0B0,0F0,0F1,0B1\n1F0,1B0,1F1,1B1\n"), "0B0 comes before 0F0"));
}

}  // namespace
}  // namespace vpp
