#pragma once
// Tensors as the optimizers' kernels see them: elements in the order of memory, whatever the strides.
#include <ATen/core/Tensor.h>

#include <string>

namespace vpp {

/// All elements in the order of memory, one dim; shares the tensor's memory, without history.
/// Requires: the tensor is laid out densely (any permutation of dims).
at::Tensor in_memory_order(const at::Tensor& tensor);

/// Throws: Error{BadData} naming the parameter when its gradient is sparse or is laid out in memory in another way than
///         it is; an undefined gradient is fine.
void check_gradient(const std::string& name, const at::Tensor& parameter);

}  // namespace vpp
