#include "program/one_microbatch.hpp"

#include <gtest/gtest.h>

#include "schedule/generators.hpp"
#include "schedule/lowering.hpp"
#include "unit/graph/graphs.hpp"

namespace vpp {
namespace {

/// Three stages; the tensor of stage 0 is used by stages 1 and 2.
Program program_with(const std::string& schedule) {
    Program program;
    program.mesh.pp = 3;
    Split& split = program.training.split;
    split.stages.resize(3);
    const auto add_edge = [&](int from, int to, int gradient_to) {
        Edge edge;
        edge.id = static_cast<int>(split.edges.size());
        edge.tensor = from;
        edge.producer = from;
        edge.consumer = to;
        edge.gradient_to = gradient_to;
        edge.has_gradient = true;
        split.edges.push_back(edge);
    };
    add_edge(0, 1, 0);
    add_edge(0, 2, 1);
    add_edge(1, 2, 1);
    program.training.schedule = lower(make_schedule(schedule, 3, 1, 6), schedule_edges(split));
    program.evaluation.emplace();
    return program;
}

std::vector<std::string> lists(const Program& program, MessageOrder order = MessageOrder::BeforeConsumer) {
    std::vector<std::string> texts;
    for (const auto& list : one_microbatch(program, order).training.schedule.actions) texts.push_back(to_text(list));
    return texts;
}

TEST(OneMicrobatch, GoesThereAndBack) {
    const std::vector<std::string> all = lists(program_with("1F1B"));
    EXPECT_EQ(all[0], "0F0 0SEND_F0>1 0SEND_F0>2 0RECV_B0<1 0B0");
    EXPECT_EQ(all[2], "2RECV_F0<0 2RECV_F0<1 2F0 2B0 2SEND_B0>1 2SEND_B0>1");
}

TEST(OneMicrobatch, HalvesWhereTheScheduleHasThem) {
    const std::vector<std::string> all = lists(program_with("ZERO_BUBBLE_H1"));
    EXPECT_NE(all[1].find("1I0"), std::string::npos) << all[1];
    EXPECT_NE(all[1].find("1W0"), std::string::npos) << all[1];
    EXPECT_EQ(all[1].find("1B0"), std::string::npos) << all[1];
}

TEST(OnOneRank, RunsMicrobatchesOneAfterTheOther) {
    test::GraphMaker maker;
    int value = maker.input("x");
    for (int i = 0; i < 3; ++i) value = maker.op("m", {value, maker.parameter("w" + std::to_string(i), 4)}, 1);
    Program program;
    program.mesh.pp = 2;
    program.training.graph = maker.finish();
    program.evaluation.emplace();
    const Program one = on_one_rank(program, {1, 2}, 2, false);
    EXPECT_EQ(to_text(one.training.schedule.actions.at(0)), "0F0 1F0 2F0 2B0 1B0 0B0 0F1 1F1 2F1 2B1 1B1 0B1");
    EXPECT_EQ(to_text(on_one_rank(program, {1}, 1, true).training.schedule.actions.at(0)), "0F0 1F0 1I0 1W0 0I0 0W0");
    EXPECT_EQ(one.mesh.num_ranks(), 1);
    EXPECT_FALSE(one.evaluation);
    EXPECT_EQ(on_one_rank(program, {}, 1, false).training.split.num_stages(), 1);
}

TEST(OneMicrobatch, KeepsSizeAndStagesAndEvaluatesNothing) {
    Program program = program_with("GPIPE");
    program.microbatch_size = 5;
    const Program one = one_microbatch(program, MessageOrder::Global);
    EXPECT_EQ(one.microbatch_size, 5);
    EXPECT_EQ(one.training.schedule.num_microbatches, 1);
    EXPECT_EQ(one.training.schedule.rank_of_stage, program.training.schedule.rank_of_stage);
    EXPECT_EQ(one.training.schedule.name, "GPIPE");
    EXPECT_FALSE(one.evaluation);
}

TEST(OneMicrobatch, ReplicasReduceTheirGradients) {
    Program program = program_with("1F1B");
    program.mesh.dp = 2;
    EXPECT_NE(lists(program)[2].find("2REDUCE_GRAD"), std::string::npos);
    EXPECT_EQ(lists(program_with("1F1B"))[2].find("REDUCE_GRAD"), std::string::npos);
}

}  // namespace
}  // namespace vpp
