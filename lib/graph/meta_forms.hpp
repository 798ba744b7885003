#pragma once
// Ops that LibTorch runs on the meta device into another memory layout than on the CPU: what they give, worked out from
// the shapes. One row of a table an op. Those that only the CPU lays out otherwise are in graph/meta_layouts.hpp, those
// that LibTorch does not run there at all in graph/meta_kernels.hpp.
#include <ATen/core/ivalue.h>

#include <vector>

namespace vpp {

/// From an op's inputs to its output, all on the meta device; sizes, strides, dtype and requires_grad are those of the
/// CPU. What backward will read stays alive with it, as on `target`, where the model will run. Throws what LibTorch
/// throws when the inputs do not fit.
using MetaForm = at::Tensor (*)(const std::vector<c10::IValue>& inputs, at::Device target);

/// The form of an op kind ("aten::layer_norm"); nullptr for ops that need none.
MetaForm find_meta_form(const char* kind);

/// A tensor on the CPU of which nobody reads the numbers: for LibTorch to say what it would do with it.
at::Tensor cpu_twin(const at::Tensor& meta);

}  // namespace vpp
