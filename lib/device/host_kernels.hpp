#pragma once
// Ops that run on the host for cards: LibTorch's kernels for cards add with atomics, in an order that nobody decides,
// and its kernels for the CPU do not. The card waits for the copies there and back, so they are for what is rare; what
// is not has its own backward pass in device/exact_kernels.hpp.
#include <ATen/core/stack.h>

namespace c10 {
class OperatorHandle;
}
namespace torch {
class Library;
}

namespace vpp {

/// Runs the op with copies on the CPU of the tensors that it is given; writes back to those that it writes, and its
/// other results come to where its first tensor is.
/// `stack`: the op's arguments at its end, in whose place its results come.
/// Requires: the op takes and gives single tensors, no lists of them.
void run_on_host(const c10::OperatorHandle& op, torch::jit::Stack& stack);

/// Adds them to what is registered for cards. graph/host_ops.hpp has their names as models have them.
void add_host_kernels(torch::Library& library);

}  // namespace vpp
