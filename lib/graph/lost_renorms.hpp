#pragma once
// Embeddings whose rows PyTorch keeps below a norm (max_norm): torch.jit.script leaves that out without a word.
#include <torch/csrc/jit/api/module.h>

#include "graph/jit_graph.hpp"

namespace vpp {

/// Adds to jit.notes which submodules train and evaluate otherwise than the model that was scripted does in Python.
void add_lost_renorms(JitGraph& jit, const torch::jit::Module& root);

}  // namespace vpp
