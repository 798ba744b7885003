#pragma once
// A backward pass in two halves, for schedules that have I and W. I computes the gradients of the stage's inputs alone;
// W computes those of the parameters from what I has left. Together they run every op that one pass runs, once, and
// give its bits.
//
// The nodes that lead to an input form the input path. Where a branch leaves it towards parameters, the gradient that
// arrives is captured during I; then the edges into the path are cut and what only the path needed is freed. W starts
// at the captured gradients. Source: the split of torch.distributed.pipelining, without its second walk over the path.
#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace vpp {

class InputNode;

/// Where gradients enter a backward pass.
struct BackwardRoots {
    std::vector<torch::autograd::Edge> edges;
    std::vector<at::Tensor> gradients;

    /// Undefined gradients are left out.
    void add(torch::autograd::Edge edge, at::Tensor gradient);
    void add(BackwardRoots more);
};

/// One whole backward pass: adds into `.grad` and fills input nodes. Gradients whose memory nobody else has may be
/// added to in it. Throws what ops throw.
void run_backward(BackwardRoots roots);

class SplitBackward {
  public:
    /// I. Returns the gradients of `inputs` by slot; undefined where none arrive. Frees the activations that W does not
    /// need; requires that nobody else needs the graph.
    std::vector<at::Tensor> run_inputs(BackwardRoots roots, const std::shared_ptr<InputNode>& inputs);

    /// W. `more` are roots of its own: arrived gradients of tied parameters.
    void run_weights(BackwardRoots more);

    /// Bytes of the gradients that wait for W.
    int64_t captured_bytes() const;

  private:
    struct Branch {
        std::shared_ptr<torch::autograd::Node> node;
        std::vector<at::Tensor> gradients;
    };
    std::vector<Branch> branches_;
    BackwardRoots roots_;  ///< off the input path from the start
};

}  // namespace vpp
