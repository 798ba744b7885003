#pragma once
// How much memory of a device this process's tensors take: of the CPU by base/live_bytes.hpp, of another device by
// LibTorch's caching allocator.
#include <c10/core/Device.h>

#include <cstdint>

namespace vpp {

class MemoryMeter {
  public:
    explicit MemoryMeter(at::Device device) : device_(device) {}

    /// Bytes that are alive now, by the time of the calls that made them: kernels may still be under way.
    int64_t now() const;
    /// The most that was alive at once since the last restart_peak, in this process.
    int64_t peak() const;
    void restart_peak() const;
    /// How many requests found no memory since the process began, those too that a library then did without: for a
    /// convolution LibTorch catches the error and has cuDNN take another algorithm. 0 on the CPU.
    int64_t failed_requests() const;
    /// How many requests were met only when LibTorch had given all memory that it kept for later back to the device,
    /// which waits for whatever that does. 0 on the CPU.
    int64_t flushes() const;
    /// How often new memory was taken of the device, or pinned on the host for it, which may wait for whatever the
    /// device does. 0 on the CPU.
    int64_t taken() const;
    /// What the device has beside all that processes have taken. Requires: not the CPU.
    int64_t free_bytes() const;
    /// Whether so little of the device is free that requests may soon be met by a flush alone. False on
    /// the CPU, and where it is not known.
    /// `taken_soon_bytes`: what is sure to be taken beside.
    bool is_nearly_full(int64_t taken_soon_bytes = 0) const;

  private:
    at::Device device_;
};

/// Gives the device all memory that LibTorch keeps for later, for whoever else computes there or for streams that are
/// yet to be made; waits for what the device does. How many bytes that were; 0 on the CPU.
int64_t give_back_memory(at::Device device);

}  // namespace vpp
