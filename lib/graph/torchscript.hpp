#pragma once
// The TorchScript front end: model file -> Graph and Source. The file is mapped; weights are read only when asked for.
// Steps, one file each: judge the code (operator_check), load without weights (jit_load), join a module per stage
// (jit_stages), inline with labels (jit_inline), attributes to inputs (jit_attributes), frozen parameters
// (jit_freeze), constants (jit_constants), the loss (jit_loss), deferred batch norm (jit_batch_norm), aliases
// (jit_alias), keyed randomness (jit_random), probe with one microbatch (probe), values and cuts (graph_builder).
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/fields.hpp"
#include "graph/graph.hpp"
#include "graph/initial_values.hpp"
#include "graph/model_files.hpp"
#include "graph/source.hpp"
#include "plan/plan.hpp"

namespace vpp {

/// Fills `out` with one field of the first samples, one after the other; behind the last comes the first again.
using SampleReader = std::function<void(int field, std::span<std::byte> out)>;

struct TorchScriptOptions {
    std::vector<std::string> inputs;  ///< data fields in the order of forward's arguments; empty: the arguments' names
    std::optional<LossPlan> loss;
    int loss_output = 0;
    std::string loss_reduction = "mean";
    bool training = true;                        ///< model.train() or model.eval() before constants are folded
    bool keep_outputs = false;                   ///< give Graph::outputs, not the loss alone
    bool count_hits = false;                     ///< give Graph::tallies
    bool deferred_batch_norm = false;            ///< in training: one update of running statistics a step
    Fields fields;                               ///< of the data set: dtypes and shapes of the inputs
    SampleReader read_samples = {};              ///< of that data set; empty: there are zeros only
    int64_t microbatch_size = 1;                 ///< samples
    std::string precision = "fp32";              ///< of the ops: train.precision
    at::Device device = at::kCPU;                ///< where the model will run: mixed precision goes by its lists
    std::vector<StagePlan> stages = {};          ///< join these; empty: one model
    InitialValues init = {};                     ///< parameters that are not read
    std::vector<std::string> freeze = {};        ///< globs over parameters that are not trained
    std::vector<std::string> eval_modules = {};  ///< globs over submodules that training has in eval mode
    std::vector<std::string> trust_sha256 = {};  ///< digests of files that may use any operator
    KeyPosition where = [](const std::string&) { return std::nullopt; };
};

struct LoadedModel {
    Graph graph;
    std::unique_ptr<Source> source;
};

/// Reads a model and probes it with one microbatch. What evaluation runs of files of its own has the weights of
/// training's, so both Graphs have the same parameters.
/// Throws Error{Plan}: stages that do not fit their modules (graph/jit_stages.hpp). Error{BadData}: not readable,
/// fields missing, no such output, an op fails with these shapes (its name, FQN and for a microbatch size that does not
/// fit the sizes that do). Calls:  local; deterministic: the same file and options give the same Graph on every rank.
LoadedModel load_torchscript(const ModelFiles& files, const TorchScriptOptions& options);

/// The Source alone, without a probe: for ranks that got the Graph from another one. `digest` is set to the model's.
std::unique_ptr<Source> open_torchscript(const ModelFiles& files, const TorchScriptOptions& options, Digest& digest);

/// The options of a plan, for ranks that compute on `device`: what torch.autocast in a model means depends on it.
TorchScriptOptions torchscript_options(const Plan& plan, const Fields& fields, int64_t microbatch_size, bool training,
                                       at::Device device);

}  // namespace vpp
