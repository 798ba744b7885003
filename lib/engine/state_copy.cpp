#include "engine/state_copy.hpp"

#include <ATen/ops/from_blob.h>

#include "engine/alignment.hpp"
#include "graph/torch_dtype.hpp"

namespace vpp {

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
        const at::Tensor& tensor = borrowed_.emplace_back(entry.tensor.cpu().contiguous());
        tensors_.push_back({entry.name,
                            from_torch(tensor.scalar_type()),
                            tensor.sizes().vec(),
                            {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}});
    }
}

uint64_t StateCopy::size_bytes() const {
    uint64_t size = 0;
    for (const TensorBytes& tensor : tensors_) size += tensor.bytes.size();
    return size;
}

}  // namespace vpp
