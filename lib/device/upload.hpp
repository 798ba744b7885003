#pragma once
// What the host has read, on its way to a device.
#include <ATen/core/Tensor.h>

#include <vector>

namespace vpp {

/// On the device, laid out as it is; the host waits for no card, and may let go of the tensor at once. `kept`, where it
/// is given, gets the pinned memory from which a card copies: while it is there the next upload takes other memory, and
/// once it is let go as many uploads may be under way at once without taking any, which may wait for all that the card
/// does. Requires: a tensor of the CPU.
at::Tensor upload(const at::Tensor& tensor, at::Device device, std::vector<at::Tensor>* kept = nullptr);

}  // namespace vpp
