#pragma once
// The ops that lose equal bits on cards: LibTorch's kernels for them add with atomics, in an order that nobody decides,
// and throw where only exact kernels may run. Found in libtorch_cuda of LibTorch 2.11.0 by its calls of
// alertNotDeterministic; without those that have another backward pass here (device/exact_kernels.hpp). Four more do so
// in one form only: histc of floating point, bincount with weights, median with a dimension, embedding_bag's maximum.
#include <string_view>

namespace vpp {

enum class Inexact { Never, Backward, Always };

/// Where an op ("aten::grid_sampler") has no kernel for cards that gives the same bits every time.
Inexact inexact_on_cards(std::string_view kind);

}  // namespace vpp
