// Tables of stages against the signatures of their modules; and that all problems come at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/graph/stages_of_files.hpp"

namespace vpp {
namespace {

using namespace test;
using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<Field> kTypedFields = {floats("x", {4}), floats("y", {4})};

ModuleSpec pair_of() {
    return {"Pair", "def forward(self, x, scale: float = 2.0):\n    return x * scale, x.size(0)\n"};
}

ModuleSpec typed_head() {
    return {
        "Head",
        "def forward(self, a, n: int, b: Optional[Tensor] = None):\n"
        "    if b is None:\n        r = torch.mean(a)\n    else:\n        r = torch.mean(a * b)\n    return r * n\n"};
}

const std::vector<StagePlan> kTypedStages = {file_stage("pair", {"x"}, {"a", "n"}),
                                             file_stage("head", {"a", "n", "y"}, {"loss"})};

std::string error_of(const std::vector<StagePlan>& stages) {
    return refusal(ErrorKind::Plan, [&] {
        load_stages({{}, {pair_of(), typed_head()}}, stage_options(kTypedFields, stages));
    });
}

std::vector<StagePlan> with_head(std::vector<std::string> inputs, std::vector<std::string> outputs = {"loss"}) {
    return {kTypedStages[0], file_stage("head", std::move(inputs), std::move(outputs))};
}

TEST(StageSignatures, WhatFitsIsAccepted) {
    EXPECT_NO_THROW(load_stages({{}, {pair_of(), typed_head()}}, stage_options(kTypedFields, kTypedStages)));
    EXPECT_NO_THROW(load_stages({{}, {pair_of(), typed_head()}}, stage_options(kTypedFields, with_head({"a", "n"}))))
        << "an argument with a default may be left out";
}

TEST(StageSignatures, UnknownInputsAreCorrected) {
    const std::string text =
        error_of({file_stage("pair", {"xx"}, {"ab", "n"}), file_stage("head", {"ac", "n"}, {"l"})});
    EXPECT_THAT(text,
                HasSubstr("pipeline.stage[0].inputs[0]:1:1: the input 'xx' is neither a data field nor an output of "
                          "an earlier stage (there are: x, y)"));
    EXPECT_THAT(text, HasSubstr("pipeline.stage[1].inputs[0]:1:1: the input 'ac'"));
    EXPECT_THAT(text, HasSubstr("did you mean 'ab'?"));
}

TEST(StageSignatures, TheNumberOfInputsIsThatOfForward) {
    EXPECT_THAT(
        error_of(with_head({"a"})),
        HasSubstr("pipeline.stage[1].inputs:1:1: the stage 'head' takes another number of inputs (got 1, expected "
                  "2 to 3 for forward(Tensor a, int n, Tensor? b=...))"));
    EXPECT_THAT(error_of(with_head({"a", "n", "y", "x"})), HasSubstr("(got 4, expected 2 to 3 for"));
}

TEST(StageSignatures, TypesMustFit) {
    EXPECT_THAT(error_of(with_head({"n", "n"})),
                HasSubstr("pipeline.stage[1].inputs[0]:1:1: the stage 'head' cannot take 'n' as 'a' (got int, expected "
                          "Tensor for"));
    EXPECT_THAT(error_of(with_head({"a", "y"})), HasSubstr("cannot take 'y' as 'n' (got Tensor, expected int"));
}

TEST(StageSignatures, TheNumberOfOutputsIsThatOfTheTuple) {
    EXPECT_THAT(error_of({file_stage("pair", {"x"}, {"a", "n", "m"}), kTypedStages[1]}),
                HasSubstr("pipeline.stage[0].outputs:1:1: the stage 'pair' has another number of outputs (got 3 names, "
                          "forward returns (Tensor, int): 2)"));
    EXPECT_THAT(error_of({file_stage("pair", {"x"}, {"a"}), file_stage("head", {"a", "x"}, {"loss"})}),
                HasSubstr("the stage 'head' cannot take 'a' as 'a' (got (Tensor, int), expected Tensor for"))
        << "one name is that of the tuple";
    EXPECT_THAT(error_of(with_head({"a", "n"}, {"loss", "more"})),
                HasSubstr("(got 2 names, forward returns Tensor: 1)"));
}

TEST(StageSignatures, AStageIsThereForOthers) {
    const std::vector<StagePlan> stages = {file_stage("one", {"x"}, {"o"}), file_stage("head", {"x"}, {"loss"})};
    EXPECT_THAT(refusal(ErrorKind::Plan,
                        [&] {
                            load_stages({{}, {linear(4, 4), linear(4, 4)}}, stage_options(kTypedFields, stages));
                        }),
                HasSubstr("pipeline.stage[0].outputs:1:1: no stage takes an output of 'one'; leave the stage out"));
}

TEST(StageSignatures, AnOutputIsNoDataField) {
    EXPECT_THAT(error_of({file_stage("pair", {"x"}, {"y", "n"}), file_stage("head", {"y", "n"}, {"loss"})}),
                HasSubstr("pipeline.stage[0].outputs[0]:1:1: the output 'y' has the name of a data field"));
}

TEST(StageSignatures, ModulesInARowMustFitEachOther) {
    ModuleSpec model{"Model", "def forward(self, x):\n    return torch.mean(self.a.forward(x))\n"};
    model.children = {{"a", linear(4, 4)}, {"pair", pair_of()}, {"list", {"ModuleList"}}};
    const auto error = [&](const std::vector<std::string>& modules) {
        const StagePlan stage = module_stage("s", modules, {"x"}, {"l"});
        return refusal(ErrorKind::Plan, [&] { load_stages({{model}, {}}, stage_options(kTypedFields, {stage})); });
    };
    EXPECT_THAT(error({"pair", "a"}),
                HasSubstr("pipeline.stage[0].modules[1]:1:1: the stage 's' with 'a' cannot take what "
                          "'pair' returns as 'x' (got (Tensor, int), expected Tensor"));
    const std::string unknown = error({"aa", "list"});
    EXPECT_THAT(unknown, HasSubstr("pipeline.stage[0].modules[0]:1:1: the model has no submodule 'aa'"));
    EXPECT_THAT(unknown, HasSubstr("pipeline.stage[0].modules[1]:1:1: the submodule 'list' has no method 'forward'"));
    EXPECT_THAT(unknown, Not(HasSubstr("another number"))) << "nothing is said about what is not known";
}

}  // namespace
}  // namespace vpp
