#pragma once
// Where the ops of a graph compute. A model says so in few places: devices that it names, ops that make a tensor out of
// nothing, and constant tensors. Everything else follows its inputs.
#include <c10/core/Device.h>
#include <torch/csrc/jit/ir/ir.h>

namespace vpp {

/// Moves a graph to a device, whatever device it was exported on: every device that it names becomes this one; an op
/// that names none and takes no tensor (torch.arange(n)) gets it, as under torch.set_default_device; constant tensors
/// are copied there, but for those that are only read as numbers, and numbers that ops calculate with. So .cpu() gives
/// its tensor, as .to("cpu") does; an op that takes an input on the host (lengths of sequences) gets a copy of it
/// there.
void place_graph(torch::jit::Graph& graph, at::Device device);

}  // namespace vpp
