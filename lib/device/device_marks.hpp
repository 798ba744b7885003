#pragma once
// When a device does what it was given: it works on behind the calls that hand it work, so a host's clock around them
// says nothing.
#include <c10/core/Device.h>
#include <c10/core/Event.h>

#include <cstdint>
#include <deque>
#include <vector>

namespace vpp {

class DeviceMarks {
  public:
    /// Requires: a device that is not the CPU.
    explicit DeviceMarks(at::Device device) : device_(device) {}
    /// A moment in the device's stream of this thread: when all that it was given until now is done.
    void mark();
    /// When the device reached each mark, on the host's clock (base/clock_alignment.hpp), in order; forgets them. Waits
    /// for the device; right to what the host takes to notice its end, some microseconds.
    std::vector<int64_t> take();

  private:
    at::Device device_;
    std::deque<c10::Event> marks_;
};

}  // namespace vpp
