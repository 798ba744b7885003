#pragma once
// Processes that have ended and whose parent does not take notice.
#include <sys/types.h>

namespace vpp {

/// Whether a child of this process has ended without having been waited for (a zombie). A parent that works waits for
/// its children within moments.
bool has_dead_child(pid_t parent);

}  // namespace vpp
