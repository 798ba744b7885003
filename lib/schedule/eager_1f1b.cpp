#include "schedule/eager_1f1b.hpp"

#include <algorithm>

#include "schedule/placement.hpp"

namespace vpp {

Schedule make_eager_1f1b(const ScheduleSize& size) {
    check_one_stage_per_rank(size, "EAGER_1F1B", "INTERLEAVED_1F1B");
    const int P = size.num_ranks, M = size.num_microbatches;
    Schedule schedule{"EAGER_1F1B", P, M, place_stages(Placement::Loop, size), {}};
    for (int rank = 0; rank < P; ++rank) {
        std::vector<Action>& list = schedule.actions.emplace_back();
        const int num_warmup = std::min(2 * (P - 1 - rank), M);
        for (int i = 0; i < num_warmup; ++i) list.push_back({ActionKind::F, rank, i});
        for (int i = 0; i < M; ++i) {
            if (i + num_warmup < M) list.push_back({ActionKind::F, rank, i + num_warmup});
            list.push_back({ActionKind::B, rank, i});
        }
    }
    return schedule;
}

}  // namespace vpp
