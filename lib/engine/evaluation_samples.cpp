#include "engine/evaluation_samples.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace vpp {

int64_t EvaluationSamples::num_groups(int replica) const {
    const int64_t before = first(0, replica, 0), of_group = first(1, 0, 0);
    return replica >= num_replicas || before >= num_samples ? 0 : (num_samples - before + of_group - 1) / of_group;
}

int64_t EvaluationSamples::first(int64_t group, int replica, int microbatch) const {
    return ((group * num_replicas + replica) * num_microbatches + microbatch) * microbatch_size;
}

int64_t EvaluationSamples::size(int64_t group, int replica, int microbatch) const {
    return std::clamp<int64_t>(num_samples - first(group, replica, microbatch), 0, microbatch_size);
}

std::vector<Draw> EvaluationSamples::draws(int64_t group, int replica, int microbatch) const {
    while (microbatch > 0 && size(group, replica, microbatch) == 0) --microbatch;
    const int64_t begin = first(group, replica, microbatch), count = size(group, replica, microbatch);
    check(count > 0, "a replica at work has samples");
    std::vector<Draw> draws;
    for (int64_t i = 0; i < count; ++i) draws.push_back({begin + i});
    return draws;
}

}  // namespace vpp
