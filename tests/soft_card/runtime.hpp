#pragma once
// The stream behind a handle of CUDA's.
#include <cuda_runtime_api.h>

#include <functional>

#include "soft_card/streams.hpp"

namespace vpp::soft_card {

inline constexpr int kNumMultiprocessors = 132;  // of an H100

/// Shares the queue that fewest streams have, the next of those in turn: CUDA_DEVICE_MAX_CONNECTIONS are there (8).
cudaStream_t new_stream();

/// Null: the default stream of this thread's card.
Stream& stream_of(cudaStream_t stream);

/// A kernel; the host waits for it where CUDA_LAUNCH_BLOCKING=1 says so.
void launch(Stream& stream, std::function<void()> kernel);

}  // namespace vpp::soft_card
