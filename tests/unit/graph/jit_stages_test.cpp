// Joined stages against the same model in one piece: ops, labels, parameters, bits.
#include "graph/jit_stages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/stage_borders.hpp"
#include "unit/graph/stages_of_files.hpp"

namespace vpp {
namespace {

using namespace test;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<Field> kFields = {floats("x", {4}), floats("y", {4})};
const Inputs kInputs = {{"x", values({2, 4}, 7)}, {"y", values({2, 4}, 8)}};

/// What is no sum of its arguments: swapping them shows.
ModuleSpec head() {
    return {"Head",
            "def forward(self, a, b, c):\n    return torch.mean(torch.linear(a, self.w) * torch.sin(b) - c)\n",
            {{"w", weight({4, 4}, 9)}}};
}

/// Linear and dropout; returns two tensors.
ModuleSpec tower(int seed) {
    ModuleSpec spec{"Tower",
                    "def forward(self, x):\n    h = self.drop.forward(self.fc.forward(x))\n"
                    "    return h, torch.tanh(h)\n"};
    spec.children = {{"fc", linear(4, 4, seed)}, {"drop", dropout()}};
    return spec;
}

/// The one model: two towers, one after the other in the graph but not in the data, and a head.
ModuleSpec whole() {
    ModuleSpec model{"Model",
                     "def forward(self, x, y):\n    a, b = self.left.forward(x)\n"
                     "    c, d = self.right.forward(y)\n    return self.head.forward(d, a, c)\n"};
    model.children = {{"left", tower(0)}, {"right", tower(3)}, {"head", head()}};
    return model;
}

const std::vector<StagePlan> kTowers = {file_stage("left", {"x"}, {"a", "b"}), file_stage("right", {"y"}, {"c", "d"}),
                                        file_stage("head", {"d", "a", "c"}, {"loss"})};
const StageFiles kFiles = {{}, {tower(0), tower(3), head()}};

Plan plan_of(const std::vector<StagePlan>& stages) {
    Plan plan;
    plan.pipeline.mode = "MANUAL_EAGER";
    plan.pipeline.stages = stages;
    return plan;
}

std::vector<std::string> parameter_names(const Graph& graph) {
    std::vector<std::string> names;
    for (const GraphParameter& parameter : graph.parameters) names.push_back(parameter.name);
    return names;
}

std::string loss_bits(LoadedModel& model) {
    return bits_of(run_whole(model, {model.graph.loss}, kInputs)[0].toTensor());
}

TEST(JitStages, FilesJoinedAreTheOneModel) {
    LoadedModel one = load(whole(), options_for(kFields));
    LoadedModel joined = load_stages(kFiles, stage_options(kFields, kTowers));
    EXPECT_EQ(labels_of(joined.graph), labels_of(one.graph));
    EXPECT_EQ(parameter_names(joined.graph), parameter_names(one.graph));
    EXPECT_EQ(parameter_of(joined.graph, "left.fc.weight").shape, (std::vector<int64_t>{4, 4}));
    EXPECT_EQ(loss_bits(joined), loss_bits(one)) << "values, weights and masks";
    const std::vector<int> borders = stage_borders(joined.graph, plan_of(kTowers));
    ASSERT_EQ(borders.size(), 2U);
    EXPECT_THAT(joined.graph.ops[static_cast<size_t>(borders[0])].module, HasSubstr("right"));
    EXPECT_EQ(bits_of(run_in_pieces(joined, borders, kInputs)), loss_bits(one));
}

TEST(JitStages, ValuesAreJoinedByName) {
    LoadedModel straight = load_stages(kFiles, stage_options(kFields, kTowers));
    const auto with_head = [](std::vector<std::string> inputs) {
        return std::vector<StagePlan>{kTowers[0], kTowers[1], file_stage("head", std::move(inputs), {"loss"})};
    };
    LoadedModel swapped = load_stages(kFiles, stage_options(kFields, with_head({"d", "c", "a"})));
    EXPECT_NE(loss_bits(swapped), loss_bits(straight));
    LoadedModel field = load_stages(kFiles, stage_options(kFields, with_head({"d", "a", "x"})));
    EXPECT_NE(loss_bits(field), loss_bits(straight));
    const std::vector<StagePlan> crossed = {file_stage("left", {"y"}, {"a", "b"}),
                                            file_stage("right", {"x"}, {"c", "d"}), kTowers[2]};
    LoadedModel other = load_stages(kFiles, stage_options(kFields, crossed));
    EXPECT_NE(loss_bits(other), loss_bits(straight));
}

TEST(JitStages, OneNameIsThatOfAWholeTuple) {
    const ModuleSpec takes_pair{"Head",
                                "def forward(self, p: Tuple[Tensor, Tensor], c):\n    a, d = p\n"
                                "    return torch.mean(torch.linear(d, self.w) * torch.sin(a) - c)\n",
                                {{"w", weight({4, 4}, 9)}}};
    const std::vector<StagePlan> stages = {file_stage("left", {"x"}, {"p"}), file_stage("head", {"p", "y"}, {"loss"})};
    LoadedModel joined = load_stages({{}, {tower(0), takes_pair}}, stage_options(kFields, stages));
    const std::vector<StagePlan> in_parts = {file_stage("left", {"x"}, {"a", "b"}),
                                             file_stage("head", {"b", "a", "y"}, {"loss"})};
    LoadedModel parts = load_stages({{}, {tower(0), head()}}, stage_options(kFields, in_parts));
    EXPECT_EQ(loss_bits(joined), loss_bits(parts));
    const std::vector<int> borders = stage_borders(joined.graph, plan_of(stages));
    EXPECT_EQ(bits_of(run_in_pieces(joined, borders, kInputs)), loss_bits(joined));
}

TEST(JitStages, TheLossIsAPartOfATupleWithOneName) {
    const std::vector<StagePlan> stages = {file_stage("left", {"x"}, {"a", "b"}), file_stage("head", {"b"}, {"both"})};
    const ModuleSpec pair{"Head", "def forward(self, b):\n    return torch.sum(b), torch.mean(b)\n"};
    TorchScriptOptions options = stage_options(kFields, stages);
    options.loss_output = 1;
    LoadedModel joined = load_stages({{}, {tower(0), pair}}, options);
    EXPECT_EQ(joined.graph.ops.back().kind, "aten::mean");
    EXPECT_EQ(joined.graph.values[static_cast<size_t>(joined.graph.loss)].producer, joined.graph.num_ops() - 1);
    options.loss_output = 2;
    EXPECT_THAT(refusal(ErrorKind::BadData,
                        [&] {
                            load_stages({{}, {tower(0), pair}}, options);
                        }),
                HasSubstr("model.loss_output = 2, but forward returns 2 outputs, counted from 0"));
}

TEST(JitStages, ATupleOfOneIsTakenWholeOrApart) {
    const std::vector<StagePlan> stages = {file_stage("one", {"x"}, {"t"}), file_stage("head", {"t"}, {"loss"})};
    const ModuleSpec one{
        "One", "def forward(self, x):\n    return (torch.linear(x, self.w),)\n", {{"w", weight({4, 4})}}};
    const ModuleSpec whole{"Whole", "def forward(self, t: Tuple[Tensor]):\n    return torch.mean(torch.sin(t[0]))\n"};
    const ModuleSpec part{"Part", "def forward(self, t):\n    return torch.mean(torch.sin(t))\n"};
    LoadedModel with_whole = load_stages({{}, {one, whole}}, stage_options(kFields, stages));
    LoadedModel with_part = load_stages({{}, {one, part}}, stage_options(kFields, stages));
    EXPECT_EQ(labels_of(with_whole.graph), labels_of(with_part.graph));
    EXPECT_EQ(loss_bits(with_whole), loss_bits(with_part));
    const std::vector<int> borders = stage_borders(with_whole.graph, plan_of(stages));
    EXPECT_EQ(bits_of(run_in_pieces(with_whole, borders, kInputs)), loss_bits(with_whole));
    ModuleSpec model{"Model", "def forward(self, x):\n    return torch.mean(x)\n"};
    model.children = {{"one", one}, {"part", part}};
    const StagePlan row = module_stage("s", {"one", "part"}, {"x"}, {"loss"});
    LoadedModel in_a_row = load_stages({{model}, {}}, stage_options(kFields, {row}));
    EXPECT_EQ(loss_bits(in_a_row), loss_bits(with_part)) << "modules in a row hand on alike";
}

TEST(JitStages, SubmodulesOfOneModelKeepTheirNames) {
    const std::vector<StagePlan> stages = {module_stage("l", {"left"}, {"x"}, {"a", "b"}),
                                           module_stage("r", {"right"}, {"y"}, {"c", "d"}),
                                           module_stage("h", {"head"}, {"d", "a", "c"}, {"loss"})};
    LoadedModel one = load(whole(), options_for(kFields));
    LoadedModel joined = load_stages({{whole()}, {}}, stage_options(kFields, stages));
    EXPECT_EQ(labels_of(joined.graph), labels_of(one.graph));
    EXPECT_EQ(parameter_names(joined.graph), parameter_names(one.graph));
    EXPECT_EQ(loss_bits(joined), loss_bits(one));
    EXPECT_THAT(joined.graph.warnings, ElementsAre("no stage takes the output 'b'"));
}

TEST(JitStages, SubmodulesAreCalledInTheirOrder) {
    const ModuleSpec model = sequential({linear(4, 4, 1), linear(4, 4, 3), linear(4, 4, 5)});
    const auto bits = [&](const std::vector<std::string>& modules) {
        TorchScriptOptions options = stage_options(kFields, {module_stage("s", modules, {"x"}, {"out"})});
        options.loss = {"mse", 0, "y"};
        LoadedModel loaded = load_stages({{model}, {}}, options);
        return loss_bits(loaded);
    };
    TorchScriptOptions options = options_for(kFields);
    options.inputs = {"x"};
    options.loss = {"mse", 0, "y"};
    LoadedModel one = load(model, options);
    EXPECT_EQ(bits({"0", "1", "2"}), loss_bits(one));
    EXPECT_NE(bits({"1", "0", "2"}), loss_bits(one));
}

TEST(JitStages, PartsThatNobodyCallsAreSaidAndTiesStay) {
    ModuleSpec model{
        "Model", "def forward(self, x):\n    return torch.mean(x * self.scale)\n", {{"scale", weight({4})}}};
    ModuleSpec tied = linear(4, 4, 1);
    model.children = {{"in_", tied}, {"body", sequential({linear(4, 4, 3), linear(4, 4, 5)})}, {"out", tied}};
    TorchScriptOptions options = stage_options(
        kFields, {module_stage("a", {"in_", "body.0"}, {"x"}, {"h"}), module_stage("b", {"out"}, {"h"}, {"o"})});
    options.loss = {"mse", 0, "y"};
    const LoadedModel joined = load_stages({{model}, {}}, options);
    EXPECT_THAT(joined.graph.warnings, ElementsAre("no stage calls these parts of the model: 'body.1', 'scale'"));
    EXPECT_THAT(parameter_of(joined.graph, "in_.weight").aliases, ElementsAre("out.weight"));
}

TEST(JitStages, AFileThatTwoStagesNameIsTwoModules) {
    const auto file = std::make_shared<const Archive>(save(linear(4, 4, 1)));
    ModelFiles files;
    files.stages = {file, file};
    TorchScriptOptions options = stage_options(kFields, {file_stage("a", {"x"}, {"h"}), file_stage("b", {"h"}, {"o"})});
    options.loss = {"mse", 0, "y"};
    LoadedModel model = load_torchscript(files, options);
    EXPECT_THAT(parameter_names(model.graph), ElementsAre("a.weight", "a.bias", "b.weight", "b.bias"));
    EXPECT_EQ(bits_of(model.source->weight(0)), bits_of(model.source->weight(2)));
}

TEST(JitStages, FilesAndSubmodulesMix) {
    const std::vector<StagePlan> stages = {module_stage("l", {"left"}, {"x"}, {"a", "b"}),
                                           file_stage("other", {"y"}, {"c", "d"}),
                                           module_stage("h", {"head"}, {"d", "a", "c"}, {"loss"})};
    LoadedModel one = load(whole(), options_for(kFields));
    LoadedModel joined = load_stages({{whole()}, {tower(3)}}, stage_options(kFields, stages));
    EXPECT_EQ(loss_bits(joined), loss_bits(one));
    EXPECT_EQ(parameter_of(joined.graph, "other.fc.weight").uses.size(), 1U);
    EXPECT_THAT(joined.graph.warnings,
                ElementsAre("no stage takes the output 'b'", "no stage calls these parts of the model: 'right'"));
    const std::vector<StagePlan> taken = {stages[0], file_stage("left", {"y"}, {"c", "d"}), stages[2]};
    EXPECT_THAT(refusal(ErrorKind::Plan,
                        [&] {
                            load_stages({{whole()}, {tower(3)}}, stage_options(kFields, taken));
                        }),
                HasSubstr("pipeline.stage[1].name:1:1: the model has an attribute 'left' already; give the stage "
                          "another name"));
}

TEST(JitStages, ASubmoduleWithoutForwardIsNoStage) {
    ModuleSpec model = whole();
    ModuleSpec bag{"Bag", "def other(self, x):\n    return x\n"};
    bag.children.emplace_back("in_it", linear(4, 4));
    model.children.emplace_back("bag", bag);
    const std::vector<StagePlan> stages = {module_stage("l", {"bag"}, {"x"}, {"a"}),
                                           module_stage("h", {"head"}, {"a", "a", "a"}, {"loss"})};
    EXPECT_THAT(refusal(ErrorKind::Plan,
                        [&] {
                            load_stages({{model}, {}}, stage_options(kFields, stages));
                        }),
                HasSubstr("the submodule 'bag' has no method 'forward'; name what is in it"));
}

TEST(JitStages, ArgumentsLeftOutGetTheirDefaultsAndBranchesFold) {
    const ModuleSpec optional{"Head",
                              "def forward(self, a, b: Optional[Tensor] = None):\n    if b is None:\n        r = a\n"
                              "    else:\n        r = a * b\n    return torch.mean(r)\n"};
    const auto labels = [&](std::vector<std::string> inputs) {
        const std::vector<StagePlan> stages = {file_stage("fc", {"x"}, {"h"}),
                                               file_stage("head", std::move(inputs), {"loss"})};
        return labels_of(load_stages({{}, {linear(4, 4), optional}}, stage_options(kFields, stages)).graph);
    };
    EXPECT_THAT(labels({"h"}), ElementsAre("aten::linear fc", "aten::mean head"));
    EXPECT_THAT(labels({"h", "h"}),
                ElementsAre("aten::linear fc", "prim::unchecked_cast head", "aten::mul head", "aten::mean head"));
}

TEST(JitStages, TheModeOfAStageThatDoesNotLookAtItIsSaid) {
    const ModuleSpec traced{"Dropout", "def forward(self, x):\n    return torch.dropout(x, 0.5, True)\n"};
    TorchScriptOptions options = stage_options(
        kFields, {file_stage("a", {"x"}, {"h"}), file_stage("b", {"h"}, {"i"}), file_stage("c", {"i"}, {"o"})});
    options.loss = {"mse", 0, "y"};
    options.training = false;
    const LoadedModel model = load_stages({{}, {linear(4, 4), dropout(), traced}}, options);
    ASSERT_EQ(model.graph.warnings.size(), 1U);
    EXPECT_THAT(model.graph.warnings[0], HasSubstr("the stage 'c': train mode is baked into this model"));
}

TEST(JitStages, AFailingOpNamesStageFileAndLine) {
    const std::vector<StagePlan> stages = {file_stage("fc", {"x"}, {"h"}),
                                           file_stage("head", {"h", "h", "h"}, {"loss"})};
    EXPECT_THAT(refusal(ErrorKind::BadData,
                        [&] {
                            load_stages({{}, {linear(4, 3), head()}}, stage_options(kFields, stages));
                        }),
                HasSubstr("the op aten::linear in 'head' of the stage 'head' (head.pt) at <string>:2 fails: "));
}

TEST(JitStages, TheDigestCoversEveryFile) {
    const TorchScriptOptions options = stage_options(kFields, kTowers);
    const Digest digest = load_stages(kFiles, options).graph.digest;
    EXPECT_EQ(load_stages(kFiles, options).graph.digest, digest);
    for (size_t changed = 0; changed < 2; ++changed) {
        StageFiles files = kFiles;
        files.stages[changed] = tower(20);
        EXPECT_NE(load_stages(files, options).graph.digest, digest) << changed;
    }
    Digest reopened;
    EXPECT_TRUE(open_torchscript(kFiles.save_for(kTowers), options, reopened));
    EXPECT_EQ(reopened, digest);
}

TEST(JitStages, AnIllegalBorderKeepsItsReason) {
    // The head writes what it got in place, and the tower's other output may be a view of it.
    const ModuleSpec views{"Views", "def forward(self, x):\n    h = x * 2\n    return h, h[:, :2]\n"};
    const ModuleSpec writes{"Writes", "def forward(self, a, b):\n    return torch.mean(a.add_(1)) + torch.mean(b)\n"};
    const std::vector<StagePlan> stages = {file_stage("views", {"x"}, {"a", "b"}),
                                           file_stage("writes", {"a", "b"}, {"loss"})};
    const LoadedModel model = load_stages({{}, {views, writes}}, stage_options(kFields, stages));
    EXPECT_THAT(refusal(ErrorKind::Plan, [&] { stage_borders(model.graph, plan_of(stages)); }),
                AllOf(HasSubstr("cannot be cut between the stages 'views' and 'writes'"),
                      HasSubstr("may share memory that is written in place")));
}

}  // namespace
}  // namespace vpp
