#pragma once
// What the host has read, on its way to a device.
#include <ATen/core/Tensor.h>

namespace vpp {

/// On the device, laid out as it is; the host waits for no card, and may let go of the tensor at once.
/// Requires: a tensor of the CPU.
at::Tensor upload(const at::Tensor& tensor, at::Device device);

}  // namespace vpp
