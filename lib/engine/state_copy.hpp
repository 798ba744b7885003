#pragma once
// The state of a rank as plain bytes, for a thread that writes them: copied, so that training may go on, or borrowed.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/tensor_bytes.hpp"
#include "optim/optimizer.hpp"

namespace vpp {

class StateCopy {
  public:
    /// Copies all tensors; the memory of an earlier copy is used again when it is large enough.
    void take(const std::vector<StateTensor>& state);
    /// Refers to the tensors themselves (to copies of those that are not contiguous), and reads those of a device piece
    /// by piece, so that the host never holds them all: nothing may write to them as long as the bytes are read. Gives
    /// the memory of an earlier copy back.
    void borrow(const std::vector<StateTensor>& state);

    /// In the order of the state; contiguous, row-major.  Owns: the bytes live until the next take or borrow.
    const std::vector<TensorBytes>& tensors() const { return tensors_; }
    /// Of all tensors.
    uint64_t size_bytes() const;

  private:
    std::unique_ptr<std::byte[]> memory_;
    size_t capacity_bytes_ = 0;
    std::vector<at::Tensor> borrowed_;
    std::vector<TensorBytes> tensors_;
};

}  // namespace vpp
