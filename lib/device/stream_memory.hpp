#pragma once
// Memory of a device that one stream fills and another uses.
#include <c10/core/Stream.h>

#include <cstddef>
#include <memory>

namespace vpp {

/// From the pool that LibTorch's allocator has for `filling`, which may fill it at once. It goes back there when it is
/// let go, and nobody gets it again before `using_it` has done what it was given until then. From any thread.
/// Throws: as LibTorch's allocator when there is none left.
std::shared_ptr<std::byte> stream_memory(c10::Stream filling, c10::Stream using_it, size_t num_bytes);

}  // namespace vpp
