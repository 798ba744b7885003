#pragma once
// Disjoint sets of a graph's values, for what may share memory.
#include <torch/csrc/jit/ir/ir.h>

#include <unordered_map>
#include <vector>

namespace vpp {

/// A value that was never joined is alone.
class ValueSets {
  public:
    /// The value that stands for the set.
    const torch::jit::Value* find(const torch::jit::Value* value);
    void join(const torch::jit::Value* a, const torch::jit::Value* b);

  private:
    std::unordered_map<const torch::jit::Value*, const torch::jit::Value*> parent_;
};

/// What the node and the nodes inside it read and make, constants too; numbers and words are left out.
std::vector<const torch::jit::Value*> values_touched(const torch::jit::Node* node);

/// One set of all that the node touches, `values`, unless what it makes lies in memory of its own.
void join_memory(const torch::jit::Node* node, const std::vector<const torch::jit::Value*>& values, ValueSets& sets);

}  // namespace vpp
