#include "engine/state_copy.hpp"

#include <ATen/ops/from_blob.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "engine/alignment.hpp"
#include "graph/torch_dtype.hpp"

namespace vpp {

namespace {

/// Copies pieces of a device's tensor, in whatever thread it is called.
std::function<void(uint64_t, std::span<std::byte>)> reader_of(const at::Tensor& tensor) {
    return [bytes = tensor.view({-1}).view(at::kByte)](uint64_t begin, std::span<std::byte> out) {
        const auto size = static_cast<int64_t>(out.size());
        at::from_blob(out.data(), {size}, at::kByte).copy_(bytes.narrow(0, static_cast<int64_t>(begin), size));
    };
}

/// Until what this thread gave the device to do is done: other threads have streams of their own.
void wait_for(at::Device device) {
    const c10::impl::VirtualGuardImpl guard(device.type());
    guard.synchronizeStream(guard.getStream(device));
}

}  // namespace

void StateCopy::take(const std::vector<StateTensor>& state) {
    size_t needed_bytes = 0;
    for (const StateTensor& entry : state) needed_bytes += aligned_bytes(entry.tensor.nbytes());
    if (needed_bytes > capacity_bytes_) {
        memory_.reset();
        memory_ = std::make_unique_for_overwrite<std::byte[]>(needed_bytes);
        capacity_bytes_ = needed_bytes;
    }
    borrowed_.clear();
    tensors_.clear();
    std::byte* place = memory_.get();
    for (const StateTensor& entry : state) {
        const at::Tensor& tensor = entry.tensor;
        at::from_blob(place, tensor.sizes(), at::TensorOptions().dtype(tensor.scalar_type())).copy_(tensor);
        tensors_.push_back(
            {entry.name, from_torch(tensor.scalar_type()), tensor.sizes().vec(), {place, tensor.nbytes()}});
        place += aligned_bytes(tensor.nbytes());
    }
}

void StateCopy::borrow(const std::vector<StateTensor>& state) {
    memory_.reset();
    capacity_bytes_ = 0;
    borrowed_.clear();
    tensors_.clear();
    for (const StateTensor& entry : state) {
        const at::Tensor& tensor = borrowed_.emplace_back(entry.tensor.detach().contiguous());
        TensorBytes& bytes =
            tensors_.emplace_back(TensorBytes{entry.name, from_torch(tensor.scalar_type()), tensor.sizes().vec(), {}});
        if (tensor.is_cpu()) {
            bytes.bytes = {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()};
        } else {
            bytes.read = reader_of(tensor);
        }
    }
    for (const at::Tensor& tensor : borrowed_) {
        if (!tensor.is_cpu()) return wait_for(tensor.device());
    }
}

uint64_t StateCopy::size_bytes() const {
    uint64_t size = 0;
    for (const TensorBytes& tensor : tensors_) size += tensor.size_bytes();
    return size;
}

}  // namespace vpp
