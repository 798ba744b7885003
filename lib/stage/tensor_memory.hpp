#pragma once
// LibTorch's memory on the CPU, counted in base/live_bytes.hpp.

namespace vpp {

/// From now on every block that LibTorch's CPU allocator gives out is counted until it is freed, by whatever thread, in
/// the bytes that the heap keeps for it. Blocks and their alignment stay as they are.
/// To be called once, before other threads use LibTorch; later calls do nothing.
void count_tensor_memory();

}  // namespace vpp
