#pragma once
// mode = "MANUAL_EAGER": the modules of all stages joined to one model. Its forward calls them in the order of the
// tables and hands values on by name, so that every later pass sees a model like any other.
#include <torch/csrc/jit/api/module.h>

#include <optional>
#include <string>
#include <vector>

#include "data/fields.hpp"
#include "graph/jit_graph.hpp"
#include "graph/model_files.hpp"

namespace vpp {

/// The loaded files of the stages.
struct StageModules {
    std::optional<torch::jit::Module> model;               ///< whose submodules stages name, if any does
    std::vector<std::optional<torch::jit::Module>> files;  ///< by stage; empty where the stage names submodules
};

/// A submodule of the joined model.
struct StageCall {
    std::string fqn;
    torch::jit::Module module;
};

/// What the stages call, by stage, in order; fewer than the table lists where one was not found.
using StageCalls = std::vector<std::vector<StageCall>>;

/// The stages as the plan has them and what they may take from outside.
struct StageTables {
    const std::vector<StagePlan>& stages;
    const Fields& fields;
    const KeyPosition& where;
};

/// The model that has all modules: the one model itself, or an empty one; files are its submodules under the names of
/// their stages. Changes modules.model. Adds problems: names that the model has already, submodules that it does not
/// have.
torch::jit::Module make_root(StageModules& modules, const StageTables& tables, StageCalls& calls,
                             std::vector<Problem>& problems);

/// Whether a module that wants one type takes the only part of a tuple instead of the tuple.
bool takes_only_part(const c10::TypePtr& given, const c10::TypePtr& wanted);

/// Compares the tables with the signatures. Adds problems: inputs that nobody makes, numbers and types of inputs and
/// outputs.
void check_signatures(const StageCalls& calls, const StageTables& tables, std::vector<Problem>& problems);

/// The forward that calls the stages, all inlined: graph and inputs of `jit`. It returns what the last call returns.
/// Requires: make_root and check_signatures found no problem.
void join_stages(JitGraph& jit, const torch::jit::Module& root, const StageCalls& calls, const StageTables& tables);

/// What a user may not have meant: outputs that nobody takes, submodules and parameters of the one model that no stage
/// calls.
std::vector<std::string> unused_parts(const StageModules& modules, const StageTables& tables);

}  // namespace vpp
