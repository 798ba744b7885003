#pragma once
// The end of a stage's autograd graph: the tensors that came from other stages. Their grad_fn is this node rather than
// AccumulateGrad, so that in-place ops may write them, gradients keep their strides, and parameters accumulate in the
// same backward pass.
#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <vector>

namespace vpp {

class InputNode : public torch::autograd::Node {
  public:
    /// Makes `tensor` an input of the stage; its gradient will be found under the returned slot.
    /// Requires: the tensor has no history. Its memory is shared, its autograd identity is this node's.
    uint32_t attach(const at::Tensor& tensor);

    /// The gradients by slot after a backward pass; undefined where none arrived.
    const torch::autograd::variable_list& gradients() const { return gradients_; }

    torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override;
    std::string name() const override { return "vpp::InputNode"; }

  private:
    torch::autograd::variable_list gradients_;
};

}  // namespace vpp
