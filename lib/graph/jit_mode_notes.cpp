#include "graph/jit_mode_notes.hpp"

#include <torch/csrc/jit/ir/constants.h>

#include <initializer_list>
#include <map>
#include <optional>
#include <string_view>

#include "graph/stage_borders.hpp"

namespace vpp {

namespace {

/// The op's argument of one of these names; null where it has none.
const torch::jit::Value* argument_of(const torch::jit::Node* node, std::initializer_list<const char*> names) {
    for (const char* name : names) {
        if (const torch::jit::Value* argument = argument_named(node, name)) return argument;
    }
    return nullptr;
}

std::optional<c10::IValue> constant(const torch::jit::Value* value) {
    return value ? torch::jit::toIValue(value) : std::nullopt;
}

/// What share of its input an op drops; null where it drops none.
const torch::jit::Value* dropped_share(const torch::jit::Node* node) {
    const bool is_dropout = std::string_view(node->kind().toQualString()).find("dropout") != std::string_view::npos;
    return is_dropout ? argument_of(node, {"p"}) : argument_of(node, {"dropout", "dropout_p"});
}

/// What tells an op the mode; null where nothing does.
const torch::jit::Value* mode_flag(const torch::jit::Node* node) {
    return argument_of(node, {"train", "training", "use_input_stats"});
}

/// Whether an op acts as in training, or as in evaluation; nullopt: the mode is nothing to it.
std::optional<bool> acts_as_in_training(const torch::jit::Node* node) {
    const std::string_view kind = node->kind().toQualString();
    if (kind.find("_norm") != std::string_view::npos) {
        const torch::jit::Value* mean = argument_of(node, {"running_mean"});
        const bool keeps_none = mean && mean->mustBeNone();  // then it takes those of the batch in both modes
        if (keeps_none || (!mean && kind.find("batch_norm") == std::string_view::npos)) return std::nullopt;
    }
    const torch::jit::Value* share = dropped_share(node);
    const auto dropped = constant(share);
    if (dropped && dropped->isDouble() && dropped->toDouble() == 0) return std::nullopt;
    const torch::jit::Value* flag = mode_flag(node);
    if (!flag && !share && kind.find("batch_norm") == std::string_view::npos) return std::nullopt;
    const auto known = constant(flag);
    return !(known && known->isBool() && !known->toBool());
}

/// By stage, -1 the one model, that has ops which act by the mode and does not look at it: whether one of them acts as
/// in training.
std::map<int, bool> baked_in(const Graph& graph, const JitGraph& jit) {
    std::map<int, bool> acts;
    for (size_t i = 0; i < graph.ops.size(); ++i) {
        const auto as_in_training = acts_as_in_training(jit.ops[i].node);
        if (as_in_training) acts[stage_of_module(jit.stages, graph.ops[i].module)] |= *as_in_training;
    }
    for (const std::string& module : jit.reads_training) acts.erase(stage_of_module(jit.stages, module));
    return acts;
}

/// Whether an op draws numbers, whatever the mode is.
bool draws_always(const JitOp& op) {
    return op.random_site >= 0 && !dropped_share(op.node) && !mode_flag(op.node);
}

/// By stage the first op of those that do not look at the mode that draws numbers always.
std::map<int, const torch::jit::Node*> first_draws(const Graph& graph, const JitGraph& jit) {
    std::map<int, const torch::jit::Node*> draws;
    for (size_t i = 0; i < graph.ops.size(); ++i) {
        if (draws_always(jit.ops[i])) draws.emplace(stage_of_module(jit.stages, graph.ops[i].module), jit.ops[i].node);
    }
    for (const std::string& module : jit.reads_training) draws.erase(stage_of_module(jit.stages, module));
    return draws;
}

/// torch.jit.trace leaves its example in the file.
bool is_traced(const std::shared_ptr<const Archive>& file) {
    return file && file->records().contains("traced_inputs.pkl");
}

/// How a stage is called, and its key.
struct StageNames {
    std::string name, key;
};
StageNames names_of(int stage, const JitGraph& jit, const ModelFiles& files, bool training) {
    const auto& file = files.in_mode(training).file_of(stage);
    const bool is_own = stage >= 0 && files.stages[static_cast<size_t>(stage)];
    const std::string model = file ? file->path().filename().string() : "the model";
    return {stage >= 0 ? "the stage '" + jit.stages[static_cast<size_t>(stage)].name + "'" : model,
            is_own ? "pipeline.stage.eval_file" : "model.eval_file"};
}

}  // namespace

void add_mode_notes(Graph& graph, const JitGraph& jit, const ModelFiles& files, bool training) {
    const std::map<int, bool> acts = baked_in(graph, jit);
    for (const auto& [stage, as_in_training] : acts) {
        const bool has_two = files.has_two(stage);
        const auto [name, key] = names_of(stage, jit, files, training);
        if (as_in_training && !has_two) {
            graph.warnings.push_back(name +
                                     ": train mode is baked into this model (it was traced), so dropout and batch norm "
                                     "act in evaluation as in training; trace it in eval mode too, and name that file "
                                     "in " +
                                     key);
        } else if (as_in_training && !training) {
            graph.warnings.push_back(name + ": " + key +
                                     " was not traced in eval mode, so dropout and batch norm act in evaluation as in "
                                     "training; trace it behind model.eval()");
        } else if (!as_in_training && training) {
            graph.warnings.push_back(name +
                                     ": eval mode is baked into this model (it was traced), so dropout and batch norm "
                                     "act in training as in evaluation, which is right where batch norm is frozen; "
                                     "else trace it behind model.train()" +
                                     (has_two ? "" : ", and name this file in " + key));
        }
    }
    for (const auto& [stage, node] : first_draws(graph, jit)) {
        if (acts.contains(stage) || files.has_two(stage) || !is_traced(files.file_of(stage))) continue;
        const auto [name, key] = names_of(stage, jit, files, training);
        graph.warnings.push_back(name + ": this model was traced, so " + op_text(jit, node) +
                                 " draws random numbers in evaluation as in training; where it should not (drop path), "
                                 "trace it in eval mode too, and name that file in " +
                                 key);
    }
}

}  // namespace vpp
