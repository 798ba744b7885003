#pragma once
// Families of values: values that may share memory are in one family, and an op writes memory of its own families only.
// The questions of jit_alias are dear and there is one for every pair; asked inside families they stay few.
#include <unordered_map>
#include <vector>

#include "graph/jit_alias.hpp"
#include "graph/jit_graph.hpp"

namespace vpp {

class MemoryFamilies {
  public:
    /// values: those that are asked about, by index. Copies what it needs.
    MemoryFamilies(const JitGraph& jit, const AliasFacts& aliases, const std::vector<torch::jit::Value*>& values);

    /// The values of one family with values[value], itself included, ascending. All others share no memory with it.
    const std::vector<size_t>& values_beside(size_t value) const { return members_.at(family_.at(value)).values; }
    /// The ops that make or use a value of this family, ascending. No other op writes its memory.
    const std::vector<size_t>& ops_beside(size_t value) const { return members_.at(family_.at(value)).ops; }

  private:
    struct Members {
        std::vector<size_t> values, ops;
    };

    std::vector<const torch::jit::Value*> family_;  ///< by value: the one that stands for the family
    std::unordered_map<const torch::jit::Value*, Members> members_;
};

}  // namespace vpp
