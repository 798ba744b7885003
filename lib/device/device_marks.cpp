#include "device/device_marks.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <cmath>
#include <limits>
#include <utility>

#include "base/clock_alignment.hpp"

namespace vpp {

c10::Stream current_stream(at::Device device) {
    return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

c10::Event moment_of(const c10::Stream& stream, c10::EventFlag flag) {
    c10::Event event(stream.device_type(), flag);
    event.record(stream);
    return event;
}

c10::Event timed_moment_of(const c10::Stream& stream) {
    return moment_of(stream, c10::EventFlag::BACKEND_DEFAULT);
}

// The first event may wait for work, and the host may be late to notice any: of some, the one that it saw soonest.
EventClock::EventClock(const c10::Stream& stream) : known_(timed_moment_of(stream)) {
    constexpr int kMostTries = 10;
    constexpr int64_t kSoonNanoseconds = 50'000;
    known_.synchronize();
    int64_t least = std::numeric_limits<int64_t>::max();
    for (int i = 0; i < kMostTries && least > kSoonNanoseconds; ++i) {
        const int64_t before = steady_nanoseconds();
        c10::Event event = timed_moment_of(stream);
        event.synchronize();
        const int64_t between = steady_nanoseconds() - before;
        if (between >= least) continue;
        least = between;
        known_ = std::move(event);
        known_time_ = before + between / 2;
    }
}

int64_t EventClock::time_of(const c10::Event& event) const {
    constexpr double kNanosecondsOfAMillisecond = 1e6;
    return known_time_ - std::llround(event.elapsedTime(known_) * kNanosecondsOfAMillisecond);
}

void DeviceMarks::mark() {
    marks_.push_back(timed_moment_of(current_stream(device_)));
}

std::vector<int64_t> DeviceMarks::take() {
    if (marks_.empty()) return {};
    const EventClock clock(current_stream(device_));
    std::vector<int64_t> times;
    for (const c10::Event& mark : marks_) times.push_back(clock.time_of(mark));
    marks_.clear();
    return times;
}

}  // namespace vpp
