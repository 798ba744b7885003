#include "plan/stage_rules.hpp"

#include <gtest/gtest.h>

#include "plan/reader.hpp"
#include "plan/rules.hpp"
#include "unit/plan/plan_texts.hpp"

namespace vpp {
namespace {

using test::built_names;
using test::error_of;
using test::holds;

const std::string kData = "[data]\nkind = 'synthetic'\nsamples = 8\nfields = { x = 'float32[4]', y = 'float32[4]' }\n";

/// Three stages: two towers and a head.
const std::string kTowers = kData + R"(
[pipeline]
mode = "MANUAL_EAGER"
[[pipeline.stage]]
name = "left"
file = "left.pt"
inputs = ["x"]
outputs = ["a"]
[[pipeline.stage]]
name = "right"
file = "right.pt"
inputs = ["y"]
outputs = ["b", "c"]
[[pipeline.stage]]
name = "head"
file = "head.pt"
inputs = ["b", "a"]
outputs = ["loss"]
)";

using Arguments = std::vector<std::string>;

Plan resolve_stages(const Arguments& arguments = {}, int world = 3, const std::string& text = kTowers) {
    return resolve_plan(parse_plan(text, "p/p.toml", arguments, built_names()), world);
}

std::string stage_problem(const Arguments& arguments, const std::string& text = kTowers) {
    return error_of([&] { resolve_stages(arguments, 3, text); }).what();
}

TEST(StageRules, TablesMakeStagesAndTheNumberOfRanks) {
    const Plan plan = resolve_stages();
    EXPECT_EQ(plan.mesh.pp, 3);
    ASSERT_EQ(plan.pipeline.stages.size(), 3U);
    EXPECT_EQ(plan.pipeline.stages[1].name, "right");
    EXPECT_EQ(plan.pipeline.stages[1].file, "p/right.pt");
    EXPECT_EQ(plan.pipeline.stages[1].outputs, (std::vector<std::string>{"b", "c"}));
    EXPECT_EQ(natural_world(parse_plan(kTowers, "p.toml", {}, built_names())), 3);
    EXPECT_EQ(resolve_stages({"pipeline.virtual_chunks=3"}, 1).mesh.pp, 1);
    EXPECT_EQ(plan.where("pipeline.stage[2].inputs[1]")->line, 21);
}

TEST(StageRules, TheResolvedTextIsThePlanAgain) {
    const Plan plan = resolve_stages();
    const Plan again = resolve_stages({}, 3, plan.resolved_text);
    EXPECT_EQ(again.resolved_text, plan.resolved_text);
    EXPECT_EQ(again.pipeline.stages[2].inputs, plan.pipeline.stages[2].inputs);
    EXPECT_TRUE(holds(plan.resolved_text, "[[pipeline.stage]]\nname = \"left\"\nfile = \"left.pt\"\n"));
    EXPECT_NE(resolve_stages({"pipeline.stage[2].inputs=['a', 'b']"}).resolved_text, plan.resolved_text);
}

TEST(StageRules, ModeAndTablesNeedEachOther) {
    EXPECT_TRUE(
        holds(stage_problem({"pipeline.mode=GRAPH_EAGER"}), "need mode = \"MANUAL_EAGER\" (got \"GRAPH_EAGER\")"));
    EXPECT_TRUE(holds(stage_problem({}, "model.file = 'm'\n" + kData + "[pipeline]\nmode = 'MANUAL_EAGER'\n"),
                      "p/p.toml:7:8: mode = \"MANUAL_EAGER\" needs [[pipeline.stage]]"));
}

TEST(StageRules, TheNumberOfTablesIsThatOfStages) {
    EXPECT_TRUE(holds(stage_problem({"pipeline.num_stages=2"}), "(got 3, expected 2 = pp 2 x virtual_chunks 1)"));
    EXPECT_TRUE(holds(stage_problem({"pipeline.virtual_chunks=2"}), "(got 3, expected 6 = pp 3 x virtual_chunks 2)"));
}

TEST(StageRules, KeysThatSayTheSameAreRefused) {
    const std::string borders = "the stages are those of [[pipeline.stage]]; leave it out";
    const std::vector<std::pair<std::string, std::string>> cases{
        {"pipeline.split_method=FLOPS", borders},
        {"pipeline.split_method=MANUAL", borders},
        {"pipeline.split_points=['a']", borders},
        {"pipeline.uniform_split_ops=true", borders},
        {"pipeline.smallest_unsplittable_units=['a']", borders},
        {"model.inputs=['x']", "each stage has its inputs; leave it out"},
        {"model.file=m.pt", "every stage has a file of its own; leave it out"},
        {"model.eval_file=m.pt", "every stage has a file of its own; give their tables an eval_file"},
    };
    for (const auto& [argument, instead] : cases) {
        const std::string text = stage_problem({argument}), key = argument.substr(0, argument.find('='));
        EXPECT_TRUE(holds(text, key + " has no meaning in mode = \"MANUAL_EAGER\": " + instead)) << text;
        EXPECT_EQ(text.find("--set", 1), std::string::npos) << "one problem only: " << text;
    }
    EXPECT_TRUE(holds(stage_problem({"pipeline.virtual_chunks=auto"}),
                      "pipeline.virtual_chunks has no meaning in mode = \"MANUAL_EAGER\": the number of "
                      "[[pipeline.stage]] tables says how many, so write it instead of \"auto\""));
    EXPECT_NO_THROW(resolve_stages({"pipeline.smallest_unsplittable_units=['a']", "pipeline.recompute.what=units"}))
        << "units are segments then";
}

TEST(StageRules, AStageHasAFileOrModules) {
    EXPECT_TRUE(
        holds(stage_problem({"pipeline.stage[0].modules=['a']", "model.file=m.pt"}), "file or modules, not both"));
    EXPECT_TRUE(holds(stage_problem({"pipeline.stage[0].file=''"}), "the stage 'left' needs a file, or modules"));
    const Arguments modules = {"pipeline.stage[0].file=''", "pipeline.stage[0].modules=['a.b']"};
    EXPECT_TRUE(holds(stage_problem(modules), "submodules of model.file, which is missing"));
    Arguments with_model = modules;
    with_model.emplace_back("model.file=m.pt");
    EXPECT_EQ(resolve_stages(with_model).model.file, "p/m.pt");
    EXPECT_TRUE(holds(stage_problem({"model.file=m.pt"}), "every stage has a file of its own; leave it out"));
}

TEST(StageRules, EvaluationMayHaveAFileOfItsOwnWhereAStageHasOne) {
    EXPECT_EQ(resolve_stages({"pipeline.stage[0].eval_file=e.pt"}).pipeline.stages[0].eval_file, "p/e.pt");
    EXPECT_TRUE(holds(stage_problem({"model.file=m.pt", "pipeline.stage[0].file=''", "pipeline.stage[0].modules=['a']",
                                     "pipeline.stage[0].eval_file=e.pt"}),
                      "the stage 'left' has an eval_file and no file; submodules of the model are evaluated from "
                      "model.eval_file"));
    EXPECT_NO_THROW(resolve_stages(
        {"model.file=m.pt", "model.eval_file=e.pt", "pipeline.stage[0].file=''", "pipeline.stage[0].modules=['a']"}));
}

TEST(StageRules, ASubmoduleIsInOneStage) {
    const Arguments modules = {"model.file=m.pt", "pipeline.stage[0].file=''", "pipeline.stage[1].file=''",
                               "pipeline.stage[0].modules=['a.b']"};
    const auto with = [&](const std::string& second) {
        Arguments arguments = modules;
        arguments.push_back("pipeline.stage[1].modules=" + second);
        return arguments;
    };
    EXPECT_TRUE(holds(stage_problem(with("['c', 'a.b']")), "the submodule 'a.b' is in the stage 'left' already"));
    EXPECT_TRUE(holds(stage_problem(with("['a']")), "is in the stage 'left' already (as 'a.b')"));
    EXPECT_TRUE(holds(stage_problem(with("['a.b.c']")), "is in the stage 'left' already (as 'a.b')"));
    EXPECT_NO_THROW(resolve_stages(with("['a.bc']")));
}

TEST(StageRules, NamesArePlainAndUnique) {
    for (const char* name : {"a.b", "1a", "a b", "../a"}) {
        EXPECT_TRUE(holds(stage_problem({std::string("pipeline.stage[0].name='") + name + "'"}),
                          "pipeline.stage[0].name must be letters, digits and '_', not begun by a digit (got \"" +
                              std::string(name) + "\")"))
            << name;
    }
    EXPECT_TRUE(holds(stage_problem({"pipeline.stage[0].name=loss"}),
                      "pipeline.stage[0].name is the name of what [loss] appends; choose another"));
    EXPECT_TRUE(holds(stage_problem({"pipeline.stage[0].name=head"}), "two stages are named 'head'"));
    EXPECT_TRUE(holds(stage_problem({"pipeline.stage[0].outputs=['b']"}),
                      "the output 'b' is made by the stage 'left' already; give it another name"));
}

TEST(StageRules, InputsComeFromEarlierStages) {
    EXPECT_TRUE(holds(stage_problem({"pipeline.stage[0].inputs=['b']"}),
                      "the input 'b' is made by the stage 'right', which comes later; a stage takes data fields and "
                      "outputs of earlier stages"));
    EXPECT_TRUE(holds(stage_problem({"pipeline.stage[1].inputs=['x', 'c']"}), "by the stage 'right' itself"));
    EXPECT_TRUE(holds(stage_problem({"pipeline.stage[2].inputs=[]"}),
                      "pipeline.stage[2].inputs is empty; name data fields or outputs of earlier stages"));
    EXPECT_TRUE(holds(stage_problem({"pipeline.stage[2].outputs=[]"}),
                      "pipeline.stage[2].outputs is empty; name what the stage returns"));
}

TEST(StageRules, TheLossIsAnOutputOfTheLastStage) {
    const std::string two = "pipeline.stage[2].outputs=['l', 'm']";
    EXPECT_TRUE(holds(stage_problem({two, "model.loss_output=2"}),
                      "counts the outputs of the last stage from 0 (got 2, 'head' has 2)"));
    EXPECT_TRUE(
        holds(stage_problem({two, "loss.kind=mse", "loss.target=y", "loss.input=2"}), "loss.input counts the outputs"));
    EXPECT_EQ(resolve_stages({"model.loss_output=1"}).model.loss_output, 1) << "one name may be that of a tuple";
}

TEST(StageRules, AllProblemsAreSaidAtOnceAtTheirPlaces) {
    const std::string text = stage_problem({"pipeline.stage[0].name='a.b'", "pipeline.stage[1].inputs=['loss']",
                                            "pipeline.split_points=['a']", "pipeline.stage[2].file=''"});
    for (const char* part : {"must be letters", "which comes later", "has no meaning", "needs a file"}) {
        EXPECT_TRUE(holds(text, part)) << text;
    }
    EXPECT_TRUE(holds(text, "p/p.toml:18:1: the stage 'head' needs a file")) << text;
}

}  // namespace
}  // namespace vpp
