#pragma once
// What mpirun's children tell of a job: those that have ended and of whom it took no notice, and the ranks that live.
#include <sys/types.h>

namespace vpp {

/// Whether a child of this process has ended without having been waited for (a zombie). A parent that works waits for
/// its children within moments.
bool has_dead_child(pid_t parent);

/// Whether a child of this process lives that mpirun started as a rank.
bool has_living_rank(pid_t parent);

}  // namespace vpp
