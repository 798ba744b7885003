#pragma once
// Tensors and plain values as messages. A message holds dtype, sizes, strides and the gradient flag beside the bytes:
// strides travel, since kernels choose their order of sums by them. Dense tensors go as their memory; expanded ones as
// their base; strided ones with gaps as their elements, laid out anew on the other side.
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

#include "comm/transport.hpp"

namespace vpp {

/// Where a message has the elements of its tensor.
enum class Contents {
    InBytes,     ///< copied behind the header
    Part,        ///< the tensor's own memory when nobody else has it, else a copy of it
    HostPart,    ///< a copy of it in the host's memory, pinned where the tensor lies on a card
    SharedPart,  ///< the tensor's own memory in any case: nobody writes into it while the message is under way
};

/// The memory from a tensor's first element on, which keeps the tensor alive.
MemoryPart part_of(at::Tensor tensor, size_t num_bytes);

/// A part lies where the tensor does: on a device only for transports that carry such memory.
/// Requires: the message is no longer than `limit_bytes`, which may be kAnySize; else a bug that names `what`.
Buffer encode_tensor(const at::Tensor& tensor, size_t limit_bytes, const std::string& what,
                     Contents contents = Contents::InBytes);

/// The tensor of a message, on `device` unless the sender's was the host's; undefined when the sender's was. A dense
/// one lies in the message where the message lies there, and keeps that alive; else it is a copy. Throws Error{BadData}
/// for a message that does not hold what it says.
struct ReceivedTensor {
    at::Tensor tensor;
    bool requires_grad = false;
};
ReceivedTensor decode_tensor(const Buffer& buffer, const std::string& what, at::Device device = at::kCPU);

/// Values without their tensors: numbers, None, strings, and lists, tuples and dicts of them. Tensors inside are
/// replaced by empty ones, to be filled in by the receiver (graph/ivalue_tensors.hpp), and the sender's card by
/// `device`, the receiver's own.
Buffer encode_values(const std::vector<c10::IValue>& values, size_t limit_bytes, const std::string& what);
std::vector<c10::IValue> decode_values(const Buffer& buffer, at::Device device = at::kCPU);

}  // namespace vpp
