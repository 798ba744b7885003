#pragma once
// The buffers and parameters that ops of a step write (batch statistics), as they were before it: a step that is given
// up puts them back.
#include <utility>
#include <vector>

#include "graph/graph.hpp"
#include "stage/weights.hpp"

namespace vpp {

class WrittenBuffers {
  public:
    /// Those that `weights` holds.  Owns: shares the tensors of `weights`.
    WrittenBuffers(const Graph& graph, const Weights& weights);
    void remember();
    void put_back();

  private:
    std::vector<std::pair<at::Tensor, at::Tensor>> buffers_;  ///< the buffer, its copy
};

}  // namespace vpp
