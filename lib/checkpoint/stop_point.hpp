#pragma once
// Named points of a save at which a test may end the process, to prove that no moment of it is dangerous.
#include <functional>
#include <string_view>

namespace vpp {

/// Called with the name of each point right after the write, fsync or rename that it names. Empty = not called.
using StopHook = std::function<void(std::string_view point)>;

/// Calls the hook, if there is one.
inline void reached(const StopHook& stop, std::string_view point) {
    if (stop) stop(point);
}

}  // namespace vpp
