#pragma once
// Microbatches from a data set: which samples, and the tensors of the fields that a stage asks for.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.hpp"
#include "graph/graph.hpp"

namespace vpp {

/// Gives the model inputs of a graph from a data set. Only the fields asked for are read.
class Loader {
  public:
    /// Throws Error{BadData} when an input of the graph is no field of the data.
    Loader(const Dataset& dataset, const Graph& graph);

    /// A model input for these samples.
    /// Shape: [samples, field shape...], contiguous.
    at::Tensor load(int input, std::span<const Draw> draws) const;
    /// The same in two parts: the bytes, which any thread may read, and the tensor of them.
    std::vector<std::byte> read(int input, std::span<const Draw> draws) const;
    at::Tensor to_tensor(int input, const std::vector<std::byte>& bytes) const;

  private:
    const Field& field_of(int input) const;

    const Dataset& dataset_;
    std::vector<int> field_of_input_;
};

}  // namespace vpp
