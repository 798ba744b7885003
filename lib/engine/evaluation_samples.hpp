#pragma once
// Which samples an evaluation runs, in the order of the data: groups of microbatches for every replica. The last group
// may end early.
#include <cstdint>
#include <vector>

#include "data/dataset.hpp"

namespace vpp {

struct EvaluationSamples {
    int64_t num_samples = 0;  ///< in all
    int64_t microbatch_size = 1;
    int num_microbatches = 1;  ///< of a replica in a group
    int num_replicas = 1;      ///< at work

    /// How many groups there are in which that replica has samples; none of one that is not at work.
    int64_t num_groups(int replica) const;
    /// The first sample of a microbatch; it may lie behind the end.
    int64_t first(int64_t group, int replica, int microbatch) const;
    /// How many samples it has; 0 behind the end.
    int64_t size(int64_t group, int replica, int microbatch) const;
    /// What runs as that microbatch: behind the end the last one of the replica that has samples, once more.
    /// Requires: the replica has samples in that group.
    std::vector<Draw> draws(int64_t group, int replica, int microbatch) const;
};

}  // namespace vpp
