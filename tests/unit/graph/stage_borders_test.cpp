#include "graph/stage_borders.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/split.hpp"
#include "unit/graph/graphs.hpp"
#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using test::GraphMaker;
using test::refusal;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<StagePlan> kStages = {
    {"one", "1.pt", {}, {}, {}}, {"two", "", {"a.b", "c"}, {}, {}}, {"three", "3.pt", {}, {}, {}}};

Plan plan_with_stages(std::vector<StagePlan> stages = kStages) {
    Plan plan;
    plan.pipeline.mode = "MANUAL_EAGER";
    plan.pipeline.stages = std::move(stages);
    for (int i = 0; i < 3; ++i)
        plan.positions["pipeline.stage[" + std::to_string(i) + "]"] = {"plan.toml", 10 + i, 1, ""};
    return plan;
}

GraphMaker ops(const std::vector<std::string>& modules) {
    GraphMaker maker;
    int x = maker.input("x");
    for (const std::string& module : modules) x = maker.op(module, {x});
    return maker;
}

TEST(StageBorders, ALabelBelongsToTheStageThatItLiesIn) {
    const std::vector<std::pair<std::string, int>> labels = {{"one", 0},   {"one.fc", 0}, {"onetwo", -1}, {"a.b", 1},
                                                             {"a.b.c", 1}, {"a.bc", -1},  {"a", -1},      {"c.d", 1},
                                                             {"two", -1},  {"three", 2},  {"", -1},       {"loss", -1}};
    for (const auto& [label, stage] : labels) EXPECT_EQ(stage_of_module(kStages, label), stage) << label;
}

TEST(StageBorders, CutsAreWhereTheStagesBegin) {
    const std::vector<std::string> modules = {"one.x", "one", "", "a.b.x", "c", "", "three", "loss"};
    EXPECT_THAT(stage_borders(ops(modules).finish(), plan_with_stages()), ElementsAre(3, 6));
    EXPECT_THAT(find_split(ops(modules).finish(), plan_with_stages(), 3), ElementsAre(3, 6));
}

TEST(StageBorders, AnotherNumberOfStagesIsRefused) {
    EXPECT_THAT(refusal(ErrorKind::Plan,
                        [&] {
                            find_split(ops({"one", "c", "three"}).finish(), plan_with_stages(), 2);
                        }),
                HasSubstr("the plan has 3 [[pipeline.stage]] tables, so it cannot be split into 2 stages"));
}

TEST(StageBorders, OneStageHasNoBorder) {
    EXPECT_TRUE(find_split(ops({"one"}).finish(), plan_with_stages({kStages[0]}), 1).empty());
}

TEST(StageBorders, AnIllegalBorderIsRefusedWithItsReason) {
    GraphMaker maker = ops({"one", "one", "c", "three"});
    maker.forbid(1, "inside");
    maker.forbid(2, "they share memory");
    const Graph graph = maker.finish();
    EXPECT_THAT(
        refusal(ErrorKind::Plan, [&] { stage_borders(graph, plan_with_stages()); }),
        HasSubstr("plan.toml:11:1: the model cannot be cut between the stages 'one' and 'two': they share memory"));
}

TEST(StageBorders, AStageWithoutOpsIsRefused) {
    const auto error = [](const std::vector<std::string>& modules) {
        return refusal(ErrorKind::Plan, [&] { stage_borders(ops(modules).finish(), plan_with_stages()); });
    };
    EXPECT_THAT(error({"one", "three"}),
                HasSubstr("plan.toml:11:1: the stage 'two' computes nothing that is needed; leave it out"));
    EXPECT_THAT(error({"c", "three"}), HasSubstr("plan.toml:10:1: the stage 'one' computes nothing"));
    EXPECT_THAT(error({"one", "c"}), HasSubstr("plan.toml:12:1: the stage 'three' computes nothing"));
    const std::string both = error({"one"});
    EXPECT_THAT(both, HasSubstr("'two' computes nothing"));
    EXPECT_THAT(both, HasSubstr("'three' computes nothing"));
}

}  // namespace
}  // namespace vpp
