#pragma once
// What mpirun's children tell of a job: those that have ended and of whom it took no notice, and the ranks that live.
#include <sys/types.h>

#include <vector>

namespace vpp {

/// Whether a child of this process has ended without having been waited for (a zombie). A parent that works waits for
/// its children within moments.
bool has_dead_child(pid_t parent);

/// Children of a process that mpirun started as ranks.
struct LivingRanks {
    int num = 0;
    std::vector<pid_t> stopped;  ///< those of them that SIGSTOP holds

    bool are_all_stopped() const { return num > 0 && stopped.size() == static_cast<size_t>(num); }
};
LivingRanks living_ranks(pid_t parent);

}  // namespace vpp
