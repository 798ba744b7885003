#pragma once
// Kernels of the meta device that LibTorch has in Python only, or nowhere: relu, where, index_select, var, convolutions
// and some 100 more. With them models are followed without computing their large ops or reading a weight.
#include <ATen/core/ivalue.h>

#include <cstdint>

namespace vpp {

/// Adds them to this process, once. An op gets one when it has a kernel of the CPU, none for meta, and a result whose
/// shape does not depend on numbers, as LibTorch's tags have it (nonzero has none), be it given or written into `out`:
/// it runs on the CPU over zeros, which are memory that nothing has touched. Convolutions, relu and where are worked
/// out from their shapes.
void complete_meta_kernels();

/// How many ops this thread has run over zeros: where one fails, it may be for what the zeros are.
int64_t num_runs_over_zeros();

/// Zeros on the CPU, which take no memory until somebody writes them, in place of tensors of the meta device, alone or
/// in a list of tensors, and the CPU in place of that device; all else as it is.
c10::IValue zeros_on_cpu(const c10::IValue& argument);

}  // namespace vpp
