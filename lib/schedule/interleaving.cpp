#include "schedule/interleaving.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace vpp {

namespace {

int group_of(const ScheduleRequest& request, const std::string& name) {
    const int P = request.size.num_ranks, M = request.size.num_microbatches;
    const int group = request.interleave_group.value_or(P);
    const int fewest = std::min(P, M), most = std::max(P, M);
    if (group < fewest || group > most) {
        throw Error(ErrorKind::Plan,
                    name + " cannot walk in groups of that many microbatches (got interleave_group_size = " +
                        std::to_string(group) + " with num_stages = " + std::to_string(P) + ", num_microbatches = " +
                        std::to_string(M) + ", expected " + std::to_string(fewest) + " to " + std::to_string(most) +
                        "); try interleave_group_size = " + std::to_string(std::clamp(group, fewest, most)));
    }
    return std::min(group, M);
}

}  // namespace

InterleavedWalk::InterleavedWalk(const ScheduleRequest& request, const std::string& name)
    : size_(request.size), group_(group_of(request, name)) {
    const int P = size_.num_ranks, M = size_.num_microbatches;
    for (int first = 0; first < M; first += group_) {
        int length = std::min(group_, M - first);
        if (first > 0) length = std::max(length, P);
        for (int local = 0; local < size_.stages_per_rank; ++local) {
            for (int i = first; i < first + length; ++i) steps_.push_back({local, i});
        }
    }
}

int InterleavedWalk::num_warmup(int hops) const {
    return std::min((size_.stages_per_rank - 1) * group_ + hops, num_steps());
}

void InterleavedWalk::append(ActionKind kind, int rank, int step, std::vector<Action>& list) const {
    const Step& one = steps_[static_cast<size_t>(step)];
    if (one.microbatch >= size_.num_microbatches) return;
    const int local = kind == ActionKind::F ? one.local_stage : size_.stages_per_rank - 1 - one.local_stage;
    list.push_back({kind, local * size_.num_ranks + rank, one.microbatch});
}

}  // namespace vpp
