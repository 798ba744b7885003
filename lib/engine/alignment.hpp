#pragma once
// Tensors that lie behind each other in one piece of memory begin at cache lines.
#include <cstddef>

namespace vpp {

/// The size, made up to a multiple of 64.
constexpr size_t aligned_bytes(size_t size_bytes) {
    constexpr size_t kAlignmentBytes = 64;
    return (size_bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
}

}  // namespace vpp
