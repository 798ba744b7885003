#pragma once
// What the tests of stages share: bits of tensors, errors as text, a backward pass without torch's front end.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

#include <string>

#include "unit/data/support.hpp"

namespace vpp::test {

/// dtype, sizes, strides and elements of a tensor as one string.
inline std::string form_of(const at::Tensor& tensor) {
    if (!tensor.defined()) return "undefined";
    const at::Tensor plain = tensor.detach().cpu().contiguous();
    std::string text = std::string(c10::toString(tensor.scalar_type())) + " ";
    for (int64_t size : tensor.sizes()) text += std::to_string(size) + ",";
    for (int64_t stride : tensor.strides()) text += " " + std::to_string(stride);
    return text + std::string(static_cast<const char*>(plain.const_data_ptr()), plain.nbytes());
}

inline void run_backward(const torch::autograd::edge_list& roots, const torch::autograd::variable_list& gradients) {
    torch::autograd::Engine::get_default_engine().execute(roots, gradients, false, false, true);
}

inline torch::autograd::Edge edge_of(const at::Tensor& tensor) {
    return torch::autograd::impl::gradient_edge(tensor);
}

}  // namespace vpp::test
