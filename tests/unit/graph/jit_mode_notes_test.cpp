// What is said of models with a mode of their own. Traces are written down: their flags are constants.
#include "graph/jit_mode_notes.hpp"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/graph/stages_of_files.hpp"

namespace vpp {
namespace {

using namespace test;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<Field> kModeFields{floats("x", {4}), floats("y", {4})};

ModuleSpec mean_of(const std::string& expression) {
    ModuleSpec model{"Model", "def forward(self, x):\n    return torch.mean(" + expression + ")\n"};
    model.buffers = {{"m", at::zeros({4})}, {"v", at::ones({4})}};
    return model;
}

std::shared_ptr<const Archive> archive(const ModuleSpec& spec) {
    return std::make_shared<const Archive>(save(spec));
}

/// `twin`: what evaluation runs; empty: the same file.
std::vector<std::string> notes(bool training, const std::string& expression, const std::string& twin = "") {
    ModelFiles files(archive(mean_of(expression)));
    if (!twin.empty()) files.evaluation = std::make_shared<const ModelFiles>(archive(mean_of(twin)));
    TorchScriptOptions options = options_for(kModeFields);
    options.training = training;
    return load_torchscript(files, options).graph.warnings;
}

const std::string kOn = "torch.dropout(x, 0.5, True)", kOff = "torch.dropout(x, 0.5, False)";

TEST(ModeNotes, ATraceInTrainModeNeedsATwin) {
    const auto advice = ElementsAre(
        EndsWith(".pt: train mode is baked into this model (it was traced), so dropout and batch norm act in "
                 "evaluation as in training; trace it in eval mode too, and name that file in model.eval_file"));
    EXPECT_THAT(notes(true, kOn), advice);
    EXPECT_THAT(notes(false, kOn), advice) << "as vpp eval says it";
    EXPECT_THAT(notes(true, kOn, kOff), IsEmpty());
    EXPECT_THAT(notes(false, kOn, kOff), IsEmpty());
}

TEST(ModeNotes, ATwinThatIsNoneIsSaid) {
    EXPECT_THAT(notes(true, kOn, kOn), IsEmpty()) << "it is evaluation's";
    EXPECT_THAT(notes(false, kOn, kOn),
                ElementsAre(EndsWith(".pt: model.eval_file was not traced in eval mode, so dropout and batch norm act "
                                     "in evaluation as in training; trace it behind model.eval()")));
}

TEST(ModeNotes, ATraceInEvalModeTrainsWithoutDropout) {
    EXPECT_THAT(notes(true, kOff),
                ElementsAre(EndsWith(".pt: eval mode is baked into this model (it was traced), so dropout and batch "
                                     "norm act in training as in evaluation, which is right where batch norm is "
                                     "frozen; else trace it behind model.train(), and name this file in "
                                     "model.eval_file")));
    EXPECT_THAT(notes(false, kOff), IsEmpty()) << "evaluation is what it should be";
    EXPECT_THAT(notes(true, kOff, kOff), ElementsAre(EndsWith("else trace it behind model.train()")));
}

TEST(ModeNotes, TheFlagsOfAllOpsAreKnown) {
    const std::string heads = "torch.view(x, [1, 2, 2, 2])";
    const auto attention = [&](const std::string& share) {
        return "torch.scaled_dot_product_attention(" + heads + ", " + heads + ", " + heads + ", None, " + share + ")";
    };
    const auto batch_norm_of = [](const std::string& statistics, const std::string& flag) {
        return "torch.batch_norm(x, None, None, " + statistics + ", " + flag + ", 0.1, 1e-5, False)";
    };
    const auto instance_norm_of = [](const std::string& statistics, const std::string& flag) {
        return "torch.instance_norm(torch.view(x, [1, 4, 2]), None, None, " + statistics + ", " + flag +
               ", 0.1, 1e-5, False)";
    };
    const std::string own = "self.m, self.v", none = "None, None";
    for (const std::string& on :
         {attention("0.1"), batch_norm_of(own, "True"), instance_norm_of(own, "True"),
          std::string("torch.rrelu(x, 0.1, 0.3, True)"), std::string("torch.feature_dropout(x, 0.1, True)")}) {
        EXPECT_THAT(notes(true, on), ElementsAre(HasSubstr("train mode is baked into"))) << on;
    }
    for (const std::string& off : {batch_norm_of(own, "False"), instance_norm_of(own, "False"),
                                   std::string("torch.rrelu(x, 0.1, 0.3, False)")}) {
        EXPECT_THAT(notes(true, off), ElementsAre(HasSubstr("eval mode is baked into"))) << off;
    }
    // The same in both modes.
    for (const std::string& both : {attention("0."), batch_norm_of(none, "True"), instance_norm_of(none, "True"),
                                    std::string("torch.dropout(x, 0.0, True)"),
                                    std::string("torch.layer_norm(x, [4], None, None, 1e-5, False)")}) {
        EXPECT_THAT(notes(true, both), IsEmpty()) << both;
    }
}

TEST(ModeNotes, ATraceThatDrawsNumbersDrawsThemInEvaluationToo) {
    const std::string path = "x * torch.bernoulli(torch.ones_like(x), 0.5)";
    const auto notes_of = [](const std::string& expression, bool is_traced, const std::string& twin = "") {
        ModuleSpec model = mean_of(expression);
        model.is_traced = is_traced;
        ModelFiles files(archive(model));
        if (!twin.empty()) files.evaluation = std::make_shared<const ModelFiles>(archive(mean_of(twin)));
        return load_torchscript(files, options_for(kModeFields)).graph.warnings;
    };
    EXPECT_THAT(notes_of(path, true),
                ElementsAre(AllOf(HasSubstr(".pt: this model was traced, so the op aten::bernoulli"),
                                  EndsWith(" draws random numbers in evaluation as in training; where it should not "
                                           "(drop path), trace it in eval mode too, and name that file in "
                                           "model.eval_file"))));
    EXPECT_THAT(notes_of(path, true, "x * 1.0"), IsEmpty());
    EXPECT_THAT(notes_of(path, false), IsEmpty()) << "a script draws in evaluation as it is told";
    EXPECT_THAT(notes_of("torch.dropout(x, 0.0, True)", true), IsEmpty()) << "it drops nothing";
    EXPECT_THAT(notes_of("torch.dropout(" + path + ", 0.5, True)", true),
                ElementsAre(HasSubstr("train mode is baked into")));
}

TEST(ModeNotes, AStageNamesItsOwnKey) {
    const ModuleSpec traced{"Dropout", "def forward(self, x):\n    return torch.dropout(x, 0.5, True)\n"};
    const ModuleSpec twin{"Dropout", "def forward(self, x):\n    return torch.dropout(x, 0.5, False)\n"};
    TorchScriptOptions options =
        stage_options(kModeFields, {file_stage("a", {"x"}, {"h"}), file_stage("b", {"h"}, {"o"})});
    options.loss = {"mse", 0, "y"};
    ModelFiles files;
    files.stages = {archive(linear(4, 4)), archive(traced)};
    EXPECT_THAT(load_torchscript(files, options).graph.warnings,
                ElementsAre(AllOf(HasSubstr("the stage 'b': train mode is baked into"),
                                  EndsWith("name that file in pipeline.stage.eval_file"))));
    ModelFiles evaluation;
    evaluation.stages = {files.stages[0], archive(twin)};
    files.evaluation = std::make_shared<const ModelFiles>(evaluation);
    for (const bool training : {true, false}) {
        options.training = training;
        EXPECT_THAT(load_torchscript(files, options).graph.warnings, IsEmpty());
    }
}

}  // namespace
}  // namespace vpp
