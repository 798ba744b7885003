#pragma once
// The parameters and buffers of a TorchScript module, under the names that vpp and its checkpoints use.
#include <functional>
#include <string>
#include <vector>

#include "graph/jit_graph.hpp"

namespace vpp {

/// Parameters in named_parameters() order, then buffers, then plain tensor attributes; one entry a tensor, under the
/// first of its names. The graph inputs are not set.
std::vector<JitParameter> list_parameters(const torch::jit::Module& model);

/// Puts the tensors of training's model in place of those of its twin for evaluation, in training's order; the graph
/// inputs stay. Throws Error{BadData}, naming the first that differs, where both are not of one model: by name, other
/// names, kind, dtype or shape. `twin_file` and `file` are for that text.
void take_weights(std::vector<JitParameter>& twin, std::vector<JitParameter> training, const std::string& twin_file,
                  const std::string& file);

/// Throws Error{BadData}, naming it, for one that is complex, sparse or quantised.
void refuse_odd_kinds(const std::vector<JitParameter>& parameters);

/// Throws Error{BadData}, naming both, for two tensors that lie in one memory, as old code ties weights
/// (head.weight.data = embedding.weight.data), where one of them `changes`: here each has memory of its own.
void refuse_shared_memory(const std::vector<JitParameter>& parameters, const std::function<bool(size_t)>& changes);

}  // namespace vpp
