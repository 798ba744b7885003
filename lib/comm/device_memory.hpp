#pragma once
// What a transport asks of the device whose memory its messages come from and go to. The device works on behind the
// calls that hand it work, so a message may not be read before the device has computed it, and memory that the device
// still uses may not be written. By LibTorch: stage/torch_device_memory.hpp.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "comm/transport.hpp"

namespace vpp {

/// Every call but take() and what filled_bytes asks comes from one thread at a time, that which computes.
class DeviceMemory {
  public:
    virtual ~DeviceMemory() = default;
    /// Makes the device the calling thread's own: to be called first by each thread that calls the others.
    virtual void enter() = 0;

    /// Parts go in pieces of so many bytes: the device moves the next ones while the library sends one.
    virtual size_t piece_bytes() const { return std::numeric_limits<size_t>::max(); }

    struct Outgoing {
        MemoryPart memory;  ///< what the library sends
        /// How many of its first bytes may be read. Asked by any thread, one at a time; never waits.
        std::function<size_t()> filled_bytes;
    };
    /// What is in the part when all that the calling thread has given the device until now is done. What is returned
    /// keeps the part as long as that needs it.
    virtual Outgoing send(MemoryPart part) = 0;

    /// New memory that the library may fill at once. From any thread.
    virtual MemoryPart take(size_t num_bytes) = 0;

    /// What comes into memory that was taken, on its way to the device.
    class Delivery {
      public:
        virtual ~Delivery() = default;
        /// The first `num_bytes` have come.
        virtual void advance(size_t num_bytes) = 0;
        /// Memory of the device in which what the calling thread gives it from now on finds all of them.
        /// Requires: all have come.
        virtual MemoryPart finish() = 0;
    };
    /// Owns: what is returned lives no longer than the DeviceMemory, and one at a time.
    virtual std::unique_ptr<Delivery> deliver(MemoryPart taken) = 0;

    /// Whether the times of what is sent and delivered from now on are kept.
    virtual void set_timed(bool) {}
    /// When the device moved each, from its first piece to its last, in the order of send() and finish(), on the host's
    /// clock (base/clock_alignment.hpp), nanoseconds; forgets them. Nothing where it moves nothing itself. Waits for
    /// the device.
    virtual std::vector<std::pair<int64_t, int64_t>> take_times() { return {}; }
};

}  // namespace vpp
