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

/// For computing: the same one in all tests of a program, and none of LibTorch's pool, which makes all of its streams
/// at once, more than a card keeps apart (device/device.hpp).
inline c10::cuda::CUDAStream computing_stream(c10::DeviceIndex card) {
    static cudaStream_t stream = nullptr;
    if (stream == nullptr) {
        check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess, "a card makes a stream");
    }
    return c10::cuda::getStreamFromExternal(stream, card);
}

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

/// Pinned memory that is kept for the next one: to take or give it may wait for all that a card does.
class PinnedBlock {
  public:
    static constexpr size_t kMostBytes = 4096;

    PinnedBlock() : memory_(take()) {}
    ~PinnedBlock() { kept().push_back(memory_); }
    PinnedBlock(const PinnedBlock&) = delete;
    PinnedBlock& operator=(const PinnedBlock&) = delete;

    unsigned char* data() const { return static_cast<unsigned char*>(memory_); }

    /// So many are there before a card has anything to do.
    static void prepare(size_t count) { std::vector<PinnedBlock> blocks(count); }

  private:
    static std::vector<void*>& kept() {
        static std::vector<void*> blocks;
        return blocks;
    }
    static void* take() {
        void* memory = nullptr;
        if (kept().empty()) {
            check(cudaHostAlloc(&memory, kMostBytes, 0) == cudaSuccess, "there is pinned memory");
        } else {
            memory = kept().back();
            kept().pop_back();
        }
        return memory;
    }

    void* memory_;
};

/// A copy on its way from a card, in pinned memory.
class LateCopy {
  public:
    LateCopy(const MemoryPart& memory, c10::cuda::CUDAStream stream) : stream_(stream), num_bytes_(memory.num_bytes) {
        check(num_bytes_ <= PinnedBlock::kMostBytes, "a block has room");
        check(cudaMemcpyAsync(pinned_.data(), memory.data.get(), num_bytes_, cudaMemcpyDeviceToHost, stream) ==
                  cudaSuccess,
              "a card copies");
    }

    Values wait() {
        stream_.synchronize();
        return {pinned_.data(), pinned_.data() + num_bytes_};
    }

  private:
    c10::cuda::CUDAStream stream_;
    size_t num_bytes_;
    PinnedBlock pinned_;
};

}  // namespace vpp::test
