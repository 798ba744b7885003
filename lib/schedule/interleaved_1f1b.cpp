#include "schedule/interleaved_1f1b.hpp"

#include "base/error.hpp"
#include "schedule/interleaving.hpp"
#include "schedule/placement.hpp"

namespace vpp {

namespace {

std::vector<Action> interleaved_1f1b_list(const InterleavedWalk& walk, int rank, int num_warmup) {
    std::vector<Action> list;
    for (int step = 0; step < num_warmup; ++step) walk.append(ActionKind::F, rank, step, list);
    for (int step = 0; step < walk.num_steps(); ++step) {
        if (step + num_warmup < walk.num_steps()) walk.append(ActionKind::F, rank, step + num_warmup, list);
        walk.append(ActionKind::B, rank, step, list);
    }
    return list;
}

}  // namespace

Schedule make_interleaved_1f1b(const ScheduleRequest& request) {
    const ScheduleSize& size = request.size;
    if (size.stages_per_rank < 2) {
        throw Error(ErrorKind::Plan,
                    "INTERLEAVED_1F1B needs several stages on each rank (got virtual_chunks = 1, expected "
                    "at least 2); try virtual_chunks = 2 or schedule_type = \"1F1B\"");
    }
    const InterleavedWalk walk(request, "INTERLEAVED_1F1B");
    Schedule schedule{
        "INTERLEAVED_1F1B", size.num_ranks, size.num_microbatches, place_stages(Placement::Loop, size), {}};
    for (int rank = 0; rank < size.num_ranks; ++rank) {
        const int num_warmup = walk.num_warmup(2 * (size.num_ranks - 1 - rank));
        schedule.actions.push_back(interleaved_1f1b_list(walk, rank, num_warmup));
    }
    return schedule;
}

}  // namespace vpp
