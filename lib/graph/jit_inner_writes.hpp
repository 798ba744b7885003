#pragma once
// What a branch or loop may write of what it was given.
#include <torch/csrc/jit/ir/ir.h>

#include <vector>

namespace vpp {

/// Values from outside of the node that an op in its blocks may write, on whatever way: by itself, by views, or as what
/// a loop carries along. Each at most once.
std::vector<const torch::jit::Value*> outer_values_written(const torch::jit::Node* node);

}  // namespace vpp
