#pragma once
// Models for the tests of graph and program, written down as values and saved as TorchScript files. No JIT headers
// here: they cost 20 seconds a test file.
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "graph/torchscript.hpp"

namespace vpp::test {

/// A module: its tensors, its submodules, and its methods as TorchScript. A tensor that is named twice is tied.
struct ModuleSpec {
    std::string class_name = "Model";
    std::string code = {};
    std::vector<std::pair<std::string, at::Tensor>> parameters = {};
    std::vector<std::pair<std::string, at::Tensor>> buffers = {};
    std::vector<std::pair<std::string, ModuleSpec>> children = {};
    std::vector<std::pair<std::string, c10::IValue>> attributes = {};
    std::string functions = {};  ///< free functions that all methods may call; read from the outermost module
    bool is_traced = false;      ///< the file has an example, as torch.jit.trace leaves it; of the outermost module
};

/// Fixed values in [-1, 1] that differ between seeds; with a gradient.
at::Tensor weight(const std::vector<int64_t>& shape, int seed = 0);
/// The same without a gradient.
at::Tensor values(const std::vector<int64_t>& shape, int seed = 0);

/// x -> x w^T + b.
ModuleSpec linear(int64_t in, int64_t out, int seed = 0);
/// x -> dropout(x, 0.5) while training.
ModuleSpec dropout();
/// Batch norm over [n, features] with running statistics.
ModuleSpec batch_norm(int64_t features);
/// Submodules "0", "1", ... one after the other, as nn.Sequential.
ModuleSpec sequential(std::vector<ModuleSpec> parts);

/// Saves into a new temporary file.
std::filesystem::path save(const ModuleSpec& spec);

/// Options for inputs of float32 or int64 fields: {"x", {4}}.
TorchScriptOptions options_for(std::vector<Field> fields, int64_t microbatch_size = 2);
inline Field floats(std::string name, std::vector<int64_t> shape) {
    return {std::move(name), DType::F32, std::move(shape)};
}
inline Field integers(std::string name, std::vector<int64_t> shape) {
    return {std::move(name), DType::I64, std::move(shape)};
}

/// Saves and loads.
LoadedModel load(const ModuleSpec& spec, const TorchScriptOptions& options);

using Inputs = std::map<std::string, at::Tensor>;

/// Runs the graph in pieces as stages would: what is live at a cut goes over as copies, one copy for one tensor, and
/// every piece has parameters of its own. Gives the loss.
at::Tensor run_in_pieces(LoadedModel& model, const std::vector<int>& cuts, const Inputs& inputs, uint64_t key = 7);
/// The uncut run with the values asked for (by their index) instead of the loss.
std::vector<c10::IValue> run_whole(LoadedModel& model, const std::vector<int>& wanted, const Inputs& inputs,
                                   uint64_t key = 7);

/// Loads a model whose fields are these inputs, and expects the bits of the loss that LibTorch gives for the file
/// itself while training: uncut, and with every cut that is legal.
Graph load_exactly(const ModuleSpec& spec, const TorchScriptOptions& options, const Inputs& inputs);

/// The bytes of a tensor.
std::string bits_of(const at::Tensor& tensor);

/// "aten::linear blocks.0" for every op.
std::vector<std::string> labels_of(const Graph& graph);
/// The first op of that kind at or behind `from`; fails the test when there is none.
int op_of(const Graph& graph, const std::string& kind, int from = 0);
const GraphParameter& parameter_of(const Graph& graph, const std::string& name);

/// The text of the Error that a call throws; fails the test when it throws none or one of another kind.
std::string refusal(ErrorKind kind, const std::function<void()>& call);

}  // namespace vpp::test
