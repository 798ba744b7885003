#pragma once
// The parameters and buffers of a TorchScript module, under the names that vpp and its checkpoints use.
#include <vector>

#include "graph/jit_graph.hpp"

namespace vpp {

/// Parameters in named_parameters() order, then buffers, then plain tensor attributes; one entry a tensor, under the
/// first of its names. The graph inputs are not set.
std::vector<JitParameter> list_parameters(const torch::jit::Module& model);

}  // namespace vpp
