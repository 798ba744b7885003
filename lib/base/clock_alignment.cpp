#include "base/clock_alignment.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/error.hpp"

namespace vpp {

int64_t steady_nanoseconds() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

ClockOffset estimate_offset(std::span<const ClockPing> pings) {
    check(!pings.empty(), "an offset comes from at least one ping");
    const auto round_trip = [](const ClockPing& ping) { return ping.answered - ping.asked; };
    const ClockPing& quickest = *std::min_element(
        pings.begin(), pings.end(),
        [&](const ClockPing& one, const ClockPing& other) { return round_trip(one) < round_trip(other); });
    const int64_t middle = quickest.asked + round_trip(quickest) / 2;
    return {middle, quickest.noted - middle, (round_trip(quickest) + 1) / 2};
}

ClockLine::ClockLine(const ClockOffset& begin, const ClockOffset& end) : begin_(begin), end_(end) {
    check(end.at >= begin.at, "clocks are compared in the order of time");
}

double ClockLine::drift() const {
    if (end_.at == begin_.at) return 0;
    return static_cast<double>(end_.offset - begin_.offset) / static_cast<double>(end_.at - begin_.at);
}

/// Solves asking + offset(asking) = other, in differences to the first estimate: these are small enough for a double.
int64_t ClockLine::to_asking(int64_t other) const {
    const int64_t since_begin = other - begin_.offset - begin_.at;
    return begin_.at + std::llround(static_cast<double>(since_begin) / (1 + drift()));
}

int64_t ClockLine::error() const {
    return std::max(begin_.error, end_.error);
}

}  // namespace vpp
