#include "device/device_marks.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <cmath>

#include "base/clock_alignment.hpp"

namespace vpp {

void DeviceMarks::mark() {
    marks_.emplace_back(device_.type(), c10::EventFlag::BACKEND_DEFAULT);
    marks_.back().record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
}

std::vector<int64_t> DeviceMarks::take() {
    constexpr double kNanosecondsOfAMillisecond = 1e6;
    mark();
    const c10::Event& last = marks_.back();
    last.synchronize();
    const int64_t now = steady_nanoseconds();
    std::vector<int64_t> times;
    for (size_t i = 0; i + 1 < marks_.size(); ++i) {
        times.push_back(now - std::llround(marks_[i].elapsedTime(last) * kNanosecondsOfAMillisecond));
    }
    marks_.clear();
    return times;
}

}  // namespace vpp
