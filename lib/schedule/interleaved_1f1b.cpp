#include "schedule/interleaved_1f1b.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "schedule/placement.hpp"

namespace vpp {

namespace {

/// One rank's list for whole groups only; actions of microbatches from M on are left out.
std::vector<Action> make_list(const ScheduleSize& size, int rank) {
    const int P = size.num_ranks, v = size.stages_per_rank, M = size.num_microbatches;
    const int num_groups = (M + P - 1) / P;
    const int num_steps = num_groups * P * v;
    const int num_warmup = std::min(2 * (P - 1 - rank) + (v - 1) * P, num_steps);
    std::vector<Action> list;
    const auto add = [&](ActionKind kind, int step) {
        const int microbatch = step / (P * v) * P + step % P;
        const int walked = step / P % v;
        const int local = kind == ActionKind::F ? walked : v - 1 - walked;
        if (microbatch < M) list.push_back({kind, local * P + rank, microbatch});
    };
    for (int step = 0; step < num_warmup; ++step) add(ActionKind::F, step);
    for (int step = 0; step < num_steps; ++step) {
        if (step + num_warmup < num_steps) add(ActionKind::F, step + num_warmup);
        add(ActionKind::B, step);
    }
    return list;
}

}  // namespace

Schedule make_interleaved_1f1b(const ScheduleSize& size) {
    if (size.stages_per_rank < 2) {
        throw Error(ErrorKind::Plan,
                    "INTERLEAVED_1F1B needs several stages on each rank (got virtual_chunks = 1, expected "
                    "at least 2); try virtual_chunks = 2 or schedule_type = \"1F1B\"");
    }
    Schedule schedule{
        "INTERLEAVED_1F1B", size.num_ranks, size.num_microbatches, place_stages(Placement::Loop, size), {}};
    for (int rank = 0; rank < size.num_ranks; ++rank) schedule.actions.push_back(make_list(size, rank));
    return schedule;
}

}  // namespace vpp
