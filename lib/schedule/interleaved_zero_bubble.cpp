#include "schedule/interleaved_zero_bubble.hpp"

#include "schedule/interleaving.hpp"
#include "schedule/placement.hpp"

namespace vpp {

namespace {

/// W lags `lag` steps behind I.
std::vector<Action> interleaved_zero_bubble_list(const InterleavedWalk& walk, int rank, int num_warmup, int lag) {
    std::vector<Action> list;
    const int num_steps = walk.num_steps();
    for (int step = 0; step < num_warmup; ++step) walk.append(ActionKind::F, rank, step, list);
    for (int step = 0; step < num_steps + lag; ++step) {
        if (step + num_warmup < num_steps) walk.append(ActionKind::F, rank, step + num_warmup, list);
        if (step < num_steps) walk.append(ActionKind::I, rank, step, list);
        if (step >= lag) walk.append(ActionKind::W, rank, step - lag, list);
    }
    return list;
}

}  // namespace

Schedule make_interleaved_zero_bubble(const ScheduleRequest& request) {
    const ScheduleSize& size = request.size;
    const InterleavedWalk walk(request, "INTERLEAVED_ZERO_BUBBLE");
    Schedule schedule{
        "INTERLEAVED_ZERO_BUBBLE", size.num_ranks, size.num_microbatches, place_stages(Placement::Loop, size), {}};
    for (int rank = 0; rank < size.num_ranks; ++rank) {
        const int num_warmup = walk.num_warmup(size.num_ranks - 1 - rank);
        schedule.actions.push_back(interleaved_zero_bubble_list(walk, rank, num_warmup, rank));
    }
    return schedule;
}

}  // namespace vpp
