#pragma once
// How long something takes, by a clock that is never set.
#include <chrono>

namespace vpp {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace vpp
