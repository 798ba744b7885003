#pragma once
// Tensors that repeat elements, as torch.tensor(0.5).expand(3) does: their strides are kept, since LibTorch sums what
// is repeated in another order than what lies in a row.
#include <ATen/core/Tensor.h>

#include <string>

namespace vpp {

/// Each element once, where expanding has repeated some.
at::Tensor without_repeats(at::Tensor tensor);

/// A copy on that device that repeats what the tensor repeats.
at::Tensor copy_with_repeats(const at::Tensor& tensor, at::Device device);

/// Copies values into the weight of that name, of the same shape.
/// Throws Error{BadData} where it repeats an element for which there are several values.
void take_values(at::Tensor weight, const at::Tensor& values, const std::string& name);

}  // namespace vpp
