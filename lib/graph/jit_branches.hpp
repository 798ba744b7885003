#pragma once
// Which control flow goes as the data have it, and which goes the same way for every microbatch.
#include <torch/csrc/jit/ir/ir.h>

namespace vpp {

/// Whether a branch or loop, or one inside it, may go another way from microbatch to microbatch: as far as can be seen,
/// its condition is not made of constants, ranks and dtypes alone. False for ops without blocks.
bool follows_data(const torch::jit::Node* node);

}  // namespace vpp
