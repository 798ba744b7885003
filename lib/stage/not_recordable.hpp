#pragma once
// Thrown while ops are recorded; they run one by one then.
#include <string>

namespace vpp {

/// What a microbatch can be that no recording is made of.
struct NotRecordable {
    std::string reason;
};

}  // namespace vpp
