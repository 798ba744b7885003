#pragma once
// The parameters and buffers that a rank holds: those its stages own, and copies of frozen ones that they only read.
#include <ATen/core/Tensor.h>

#include <map>
#include <vector>

#include "graph/graph.hpp"
#include "graph/source.hpp"
#include "graph/stages.hpp"

namespace vpp {

/// Tensors by the graph's parameter index. Handles: copies share the tensors.
class Weights {
  public:
    /// Reads what the stages own and borrow onto the source's device; nothing else of the file is touched. Throws
    /// Error{BadData}.
    void load(Source& source, const Split& split, const std::vector<int>& stages);
    /// Adds what these stages use and the rank does not hold yet: things that only evaluation reads.
    void load_missing(Source& source, const Graph& graph, const Split& split, const std::vector<int>& stages);

    /// The same, but with other tensors for some of the parameters.
    Weights with(const std::map<int, at::Tensor>& others) const;

    /// Where all of them are.
    at::Device device() const { return device_; }
    bool contains(int parameter) const { return tensors_.count(parameter) > 0; }
    const at::Tensor& at(int parameter) const;
    /// Owned parameters and buffers, ascending: what this rank trains and saves.
    const std::vector<int>& owned() const { return owned_; }
    /// Everything at hand, borrowed ones too, ascending: what a checkpoint fills.
    std::vector<int> held() const;

  private:
    std::map<int, at::Tensor> tensors_;
    std::vector<int> owned_;
    at::Device device_ = at::kCPU;
};

}  // namespace vpp
