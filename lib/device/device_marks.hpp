#pragma once
// When a device does what it was given: it works on behind the calls that hand it work, so a host's clock around them
// says nothing.
#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <deque>
#include <vector>

namespace vpp {

/// In which this thread gives the device its work.
c10::Stream current_stream(at::Device device);

/// A moment in a stream: when all that it was given until now is done.
c10::Event moment_of(const c10::Stream& stream, c10::EventFlag flag = c10::EventFlag::PYTORCH_DEFAULT);
/// One whose time can be asked for.
c10::Event timed_moment_of(const c10::Stream& stream);

/// The clock of a stream's device beside that of the host.
class EventClock {
  public:
    /// Waits for the stream. Right to what the host takes to notice that a device is done, some microseconds.
    explicit EventClock(const c10::Stream& stream);
    /// On the host's clock (base/clock_alignment.hpp), nanoseconds.
    /// Requires: a timed moment, which was reached.
    int64_t time_of(const c10::Event& event) const;

  private:
    c10::Event known_;
    int64_t known_time_ = 0;
};

class DeviceMarks {
  public:
    /// Requires: a device that is not the CPU.
    explicit DeviceMarks(at::Device device) : device_(device) {}
    /// A moment in the device's stream of this thread.
    void mark();
    /// When the device reached each mark, in order, as by EventClock; forgets them.
    std::vector<int64_t> take();

  private:
    at::Device device_;
    std::deque<c10::Event> marks_;
};

}  // namespace vpp
