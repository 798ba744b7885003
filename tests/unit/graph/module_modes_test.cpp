#include "graph/module_modes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using namespace test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using torch::jit::Module;

const KeyPosition kNoPosition = [](const std::string&) { return std::nullopt; };

Module module_of(const std::string& name, std::vector<std::pair<std::string, Module>> children = {}) {
    Module module(name);
    module.register_attribute("training", c10::BoolType::get(), true);
    for (const auto& [child, value] : children) module.register_module(child, value);
    return module;
}

/// t.bn, t.drop and head.
Module teacher_and_head() {
    return module_of("Root", {{"t", module_of("Teacher", {{"bn", module_of("Norm")}, {"drop", module_of("Drop")}})},
                              {"head", module_of("Head")}});
}

std::vector<std::string> in_train_mode(const Module& root) {
    std::vector<std::string> names;
    for (const auto& module : root.named_modules()) {
        if (module.value.attr("training").toBool()) names.push_back(module.name);
    }
    return names;
}

TEST(ModuleModes, GlobsKeepInEvalModeWhatLiesInWhatTheyMatch) {
    Module root = teacher_and_head();
    set_module_modes(root, true, {"t"}, kNoPosition);
    EXPECT_THAT(in_train_mode(root), ElementsAre("", "head"));
    set_module_modes(root, true, {"*bn"}, kNoPosition);
    EXPECT_THAT(in_train_mode(root), ElementsAre("", "t", "t.drop", "head"));
    set_module_modes(root, true, {}, kNoPosition);
    EXPECT_EQ(in_train_mode(root).size(), 5U);
    set_module_modes(root, false, {}, kNoPosition);
    EXPECT_THAT(in_train_mode(root), IsEmpty());
    const std::string said = refusal(ErrorKind::Plan, [&] {
        set_module_modes(root, true, {"t", "norm*"}, kNoPosition);
    });
    EXPECT_EQ(said, "model.eval_modules: no submodule matches 'norm*'; names look like 't'");
    Module leaf = module_of("Leaf");
    EXPECT_THAT(refusal(ErrorKind::Plan, [&] { set_module_modes(leaf, true, {"*"}, kNoPosition); }),
                HasSubstr("no submodule matches '*'; the model has none"));
}

TEST(ModuleModes, OutermostSubmodulesOfAFileThatIsInTrainMode) {
    Module root = teacher_and_head();
    EXPECT_THAT(submodules_in_eval_mode(root, false), IsEmpty());
    root.attr("t").toModule().eval();
    root.attr("head").toModule().eval();
    EXPECT_THAT(submodules_in_eval_mode(root, false), ElementsAre("t", "head"));
    EXPECT_THAT(submodules_in_eval_mode(root, true), IsEmpty()) << "files of stages that are in eval mode as a whole";
    root.attr("t").toModule().setattr("training", true);
    EXPECT_THAT(submodules_in_eval_mode(root, true), ElementsAre("t.bn", "t.drop"));
    root.eval();
    EXPECT_THAT(submodules_in_eval_mode(root, false), IsEmpty());
}

TEST(ModuleModes, OtherModesThanThoseOfTheFileAreSaid) {
    const auto notes = [](const std::vector<std::string>& in_eval_mode, const std::vector<std::string>& globs) {
        JitGraph jit;
        jit.reads_training = {"t.bn", "head"};
        add_module_mode_notes(jit, in_eval_mode, globs);
        return jit.notes;
    };
    EXPECT_THAT(notes({}, {}), IsEmpty());
    EXPECT_THAT(notes({"t", "traced"}, {}),
                ElementsAre("in eval mode in the model file, but trained in train mode, as behind model.train(): t; "
                            "what shall stay in eval mode goes into model.eval_modules"));
    EXPECT_THAT(notes({"t"}, {"t"}), IsEmpty());
    EXPECT_THAT(notes({"t.bn"}, {"t"}), IsEmpty());
    EXPECT_THAT(notes({}, {"traced"}),
                ElementsAre("model.eval_modules: nothing that 'traced' matches looks at its mode (a trace never does), "
                            "so that it changes nothing"));
}

// What stays in eval mode drops nothing and keeps its running statistics; the rest is trained.
TEST(ModuleModes, AFrozenPartRunsAsInEvaluation) {
    const ModuleSpec model = sequential({linear(4, 4), batch_norm(4), dropout(), linear(4, 4)});
    const auto options_of = [](std::vector<std::string> eval_modules, bool training = true) {
        TorchScriptOptions options = options_for({floats("x", {4}), floats("y", {4})});
        options.loss = LossPlan{.kind = "mse", .input = 0, .target = "y"};
        options.eval_modules = std::move(eval_modules);
        options.training = training;
        return options;
    };
    const Inputs inputs{{"x", values({2, 4})}, {"y", values({2, 4}, 1)}};
    const auto loss = [&](const TorchScriptOptions& options) {
        LoadedModel loaded = load(model, options);
        return bits_of(run_in_pieces(loaded, {1, 2}, inputs));
    };
    EXPECT_EQ(loss(options_of({"1", "2"})), loss(options_of({}, false)));
    EXPECT_NE(loss(options_of({"1"})), loss(options_of({}, false))) << "dropout is on";
    EXPECT_NE(loss(options_of({"2"})), loss(options_of({}, false))) << "statistics are those of the batch";
    EXPECT_NE(loss(options_of({})), loss(options_of({"2"})));
}

}  // namespace
}  // namespace vpp
