#pragma once
// What a transport asks of the device whose memory its messages come from and go to. The device works on behind the
// calls that hand it work, so a message may not be read before the device has computed it, and memory that the device
// still uses may not be written. By LibTorch: stage/torch_device_memory.hpp.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "comm/transport.hpp"

namespace vpp {

/// Every call but take() and what is_filled asks comes from one thread at a time, that which computes.
class DeviceMemory {
  public:
    virtual ~DeviceMemory() = default;
    /// Makes the device the calling thread's own: to be called first by each thread that calls the others.
    virtual void enter() = 0;

    struct Outgoing {
        MemoryPart memory;                ///< what the library sends
        std::function<bool()> is_filled;  ///< before that it must not be read; asked by any thread, never waits
    };
    /// What is in the part when all that the calling thread has given the device until now is done. What is returned
    /// keeps the part as long as that needs it.
    virtual Outgoing send(MemoryPart part) = 0;

    /// New memory that the library may fill at once. From any thread.
    virtual MemoryPart take(size_t num_bytes) = 0;
    /// Memory of the device in which what the calling thread gives it from now on finds what has come into `taken`.
    virtual MemoryPart deliver(MemoryPart taken) = 0;

    /// Whether the times of what is sent and delivered from now on are kept.
    virtual void set_timed(bool) {}
    /// When the device moved each, in the order of the calls, on the host's clock (base/clock_alignment.hpp),
    /// nanoseconds; forgets them. Nothing where it moves nothing itself. Waits for the device.
    virtual std::vector<std::pair<int64_t, int64_t>> take_times() { return {}; }
};

}  // namespace vpp
