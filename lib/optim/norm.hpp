#pragma once
// Clipping by the global gradient norm, in the pieces that ranks need: each forms the norms of its own parameters, one
// forms the total from all of them in the order of the model's parameters(), each scales its own gradients.
// Put together they are torch.nn.utils.clip_grad_norm_, bit for bit.
#include <ATen/core/Tensor.h>

#include <vector>

namespace vpp {

/// The 2-norm of each gradient; no bit of one depends on the others.
/// Shape:    [any] each -> [] each, of the gradient's dtype; an undefined gradient gives an undefined norm.
/// Requires: a gradient has the strides of its parameter: a transposed copy has another norm.
/// Source:   torch._foreach_norm, which adds on a card in another order than torch.linalg.vector_norm.
std::vector<at::Tensor> parameter_norms(const std::vector<at::Tensor>& gradients);

/// The 2-norm of norms, on that device and in the order of their parameters, which the bits depend on, those of a dtype
/// together. Undefined ones are left out.
/// Shape:  [] each, on any one device -> []; 0 when there is none.
/// Source: torch.nn.utils.get_total_norm.
at::Tensor total_norm(const std::vector<at::Tensor>& norms, at::Device device = at::kCPU);

/// What gradients are multiplied by so that their norm is at most `max_norm`; at most 1; no number when total is none.
/// Shape:    [] -> [].
/// Requires: max_norm > 0.
/// Source:   Python's `max_norm / (total + 1e-6)`, which multiplies by the reciprocal; a division has other bits.
at::Tensor clip_coefficient(const at::Tensor& total, double max_norm);

/// Multiplies the defined gradients, all of one device, in place, also by a coefficient of 1 (as clip_grad_norm_ does).
void scale_gradients(const std::vector<at::Tensor>& gradients, const at::Tensor& coefficient);

}  // namespace vpp
