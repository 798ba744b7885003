#include "device/memory_begin.hpp"

#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

namespace vpp {

namespace {

constexpr int64_t kHostAlignmentBytes = 64;     // c10/core/alignment.h
constexpr int64_t kDeviceAlignmentBytes = 512;  // kMinBlockSize of c10/cuda/CUDACachingAllocator

int64_t alignment_bytes(at::Device device) {
    return device.is_cpu() ? kHostAlignmentBytes : kDeviceAlignmentBytes;
}

}  // namespace

int64_t begin_bytes_of(const void* data, at::Device device) {
    return static_cast<int64_t>(reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(alignment_bytes(device)));
}

int64_t begin_bytes_of(const at::Tensor& tensor) {
    return tensor.numel() == 0 ? 0 : begin_bytes_of(tensor.const_data_ptr(), tensor.device());
}

at::Tensor empty_beginning_at(int64_t begin_bytes, at::IntArrayRef sizes, at::IntArrayRef strides,
                              const at::TensorOptions& options) {
    if (begin_bytes == 0) return at::empty_strided(sizes, strides, options);
    const auto element_bytes = static_cast<int64_t>(options.dtype().itemsize());
    const auto extent_bytes =
        static_cast<int64_t>(at::detail::computeStorageNbytes(sizes, strides, options.dtype().itemsize()));
    const int64_t alignment = alignment_bytes(options.device());
    const at::Tensor room = at::empty({(extent_bytes + alignment) / element_bytes}, options);
    // Devices other than cards may begin memory elsewhere.
    const int64_t own_bytes = begin_bytes_of(room);
    const int64_t offset_bytes = (begin_bytes % alignment - own_bytes + alignment) % alignment;
    return at::empty({0}, options).set_(room.storage(), offset_bytes / element_bytes, sizes, strides);
}

at::Tensor copy_beginning_alike(const at::Tensor& tensor) {
    const at::Tensor plain = tensor.detach();
    if (plain.numel() == 0 || at::has_internal_overlap(plain) == at::MemOverlap::Yes) return plain.clone();
    return empty_beginning_at(begin_bytes_of(plain), plain.sizes(), plain.strides(), plain.options()).copy_(plain);
}

}  // namespace vpp
