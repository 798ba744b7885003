#pragma once
// Where a tensor begins in the memory that was allocated for it. Kernels choose their order of sums by the alignment
// of what they read (MKL's products on the CPU, LibTorch's reductions and cuBLAS on cards), so a tensor that is laid
// down anew keeps it: the second row of [2, 61] floats lies 244 bytes behind the first, not where memory begins.
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace vpp {

/// How many bytes the address lies behind the last place where LibTorch would begin memory on that device:
/// less than 64 on the CPU, than 512 on others. 0 for the first element of a tensor with memory of its own.
int64_t begin_bytes_of(const void* data, at::Device device);
/// The same of a tensor's first element; 0 when it has none.
int64_t begin_bytes_of(const at::Tensor& tensor);

/// at::empty_strided, but the first element lies so far behind such a place.
/// Shape:    -> sizes, in these strides; it may have a storage offset and is no view.
/// Requires: begin_bytes is not negative and a multiple of the size of an element.
/// Throws:   what at::empty does.
at::Tensor empty_beginning_at(int64_t begin_bytes, at::IntArrayRef sizes, at::IntArrayRef strides,
                              const at::TensorOptions& options);

/// A copy that kernels cannot tell from the tensor: with its strides, beginning as it does. Of a tensor whose elements
/// share places the copy has them apart.
at::Tensor copy_beginning_alike(const at::Tensor& tensor);

}  // namespace vpp
