#pragma once
// Which control flow goes as the data have it, and which goes the same way for every microbatch.
#include <torch/csrc/jit/ir/ir.h>

namespace vpp {

/// Whether a branch or loop, or one inside it, may go another way from microbatch to microbatch: as far as can be seen,
/// its condition is not made of constants, ranks and dtypes alone. False for ops without blocks.
bool follows_data(const torch::jit::Node* node);

/// Whether a list, dict or tuple may hold other tensors from microbatch to microbatch: what follows the data gives or
/// changes it, or one that it is made of or taken from, or says which part of that.
bool may_hold_others(const torch::jit::Value* container);

/// Whether what the op gives may be another tensor from microbatch to microbatch, or not: control flow that follows the
/// data, and ops that take an element out of what it gives or changes, or one that the data choose.
bool may_give_others(const torch::jit::Node* node);

}  // namespace vpp
