#pragma once
// LibTorch's memory on the CPU, counted in base/live_bytes.hpp and kept for the next step by base/block_cache.hpp.

namespace vpp {

/// From now on every block that LibTorch's CPU allocator gives out is counted until it is freed, by whatever thread, in
/// the bytes that the heap keeps for it, and large ones are used again. Their alignment stays as it is.
/// To be called once, before other threads use LibTorch; later calls do nothing.
void count_tensor_memory();

}  // namespace vpp
