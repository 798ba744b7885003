#pragma once
// Ops whose kernels for the CPU lay their output out as those of the meta device and of cards do not: by the order of
// their input in memory, mostly. What is behind them runs by that: contiguous() copies a tensor or gives it on.
#include <ATen/core/ivalue.h>
#include <c10/core/MemoryFormat.h>

#include <optional>
#include <vector>

namespace vpp {

/// From an op's inputs on the meta device to the order of its output on `target`; nullopt where it is that of meta.
using MetaLayout = std::optional<at::MemoryFormat> (*)(const std::vector<c10::IValue>& inputs, at::Device target);

/// The layout of an op kind ("aten::group_norm"); nullptr for ops that need none.
MetaLayout find_meta_layout(const char* kind);

}  // namespace vpp
