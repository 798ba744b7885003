#pragma once
// Runs of ops as interpreter code of their own.
#include <memory>
#include <optional>
#include <vector>

#include "graph/jit_graph.hpp"
#include "graph/source.hpp"

namespace vpp {

/// Compiles ops, in ascending order: inputs first, then what `outputs` names. What an op takes is one of the inputs or
/// made by one of the ops before it. The executable keeps what it needs of the graph. Ops compute on `device`: a
/// device that the model names is that one, and so is the one of ops that name none and take no tensor
/// (torch.arange(n)), as under torch.set_default_device. Constant tensors go there too. They are cast to `autocast` as
/// its lists there say (graph/autocast.hpp).
std::unique_ptr<Executable> compile_ops(const JitGraph& jit, const std::vector<int>& ops,
                                        const std::vector<torch::jit::Value*>& inputs,
                                        const std::vector<torch::jit::Value*>& outputs, at::Device device = at::kCPU,
                                        std::optional<at::ScalarType> autocast = std::nullopt);

}  // namespace vpp
