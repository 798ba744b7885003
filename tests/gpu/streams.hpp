#pragma once
// What a card is still doing, for tests of when memory is read, filled and given again.
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <future>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "comm/transport.hpp"

namespace vpp::test {

using Values = std::vector<unsigned char>;

/// Keeps a card's compute stream from going on until it is let go.
class HeldStream {
  public:
    explicit HeldStream(c10::cuda::CUDAStream stream) : stream_(stream) {
        const auto wait = [](void* held) { static_cast<HeldStream*>(held)->let_go_.get_future().wait(); };
        check(cudaLaunchHostFunc(stream, wait, this) == cudaSuccess, "a stream calls functions");
    }
    ~HeldStream() {
        let_go();
        stream_.synchronize();
    }
    HeldStream(const HeldStream&) = delete;
    HeldStream& operator=(const HeldStream&) = delete;

    void let_go() {
        if (!std::exchange(is_let_go_, true)) let_go_.set_value();
    }

  private:
    c10::cuda::CUDAStream stream_;
    std::promise<void> let_go_;
    bool is_let_go_ = false;
};

/// A copy on its way from a card, in pinned memory.
class LateCopy {
  public:
    LateCopy(const MemoryPart& memory, c10::cuda::CUDAStream stream) : stream_(stream), num_bytes_(memory.num_bytes) {
        check(cudaHostAlloc(&pinned_, memory.num_bytes, 0) == cudaSuccess, "there is pinned memory");
        check(cudaMemcpyAsync(pinned_, memory.data.get(), memory.num_bytes, cudaMemcpyDeviceToHost, stream) ==
                  cudaSuccess,
              "a card copies");
    }
    ~LateCopy() { cudaFreeHost(pinned_); }
    LateCopy(const LateCopy&) = delete;
    LateCopy& operator=(const LateCopy&) = delete;

    Values wait() {
        stream_.synchronize();
        const auto* bytes = static_cast<const unsigned char*>(pinned_);
        return {bytes, bytes + num_bytes_};
    }

  private:
    c10::cuda::CUDAStream stream_;
    size_t num_bytes_;
    void* pinned_ = nullptr;
};

}  // namespace vpp::test
