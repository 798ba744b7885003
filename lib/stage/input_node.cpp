#include "stage/input_node.hpp"

#include <torch/csrc/autograd/variable.h>

namespace vpp {

uint32_t InputNode::attach(const at::Tensor& tensor) {
    const uint32_t slot = add_input_metadata(tensor);
    torch::autograd::impl::set_gradient_edge(tensor, {shared_from_this(), slot});
    gradients_.resize(slot + 1);
    return slot;
}

torch::autograd::variable_list InputNode::apply(torch::autograd::variable_list&& gradients) {
    gradients_ = std::move(gradients);
    return {};
}

}  // namespace vpp
