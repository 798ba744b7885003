#include "schedule/one_f_one_b.hpp"

#include <algorithm>

#include "schedule/placement.hpp"

namespace vpp {

Schedule make_one_f_one_b(const ScheduleSize& size) {
    check_one_stage_per_rank(size, "1F1B", "INTERLEAVED_1F1B");
    Schedule schedule{"1F1B", size.num_ranks, size.num_microbatches, place_stages(Placement::Loop, size), {}};
    for (int rank = 0; rank < size.num_ranks; ++rank) {
        std::vector<Action>& list = schedule.actions.emplace_back();
        const int num_warmup = std::min(size.num_ranks - 1 - rank, size.num_microbatches);
        for (int i = 0; i < num_warmup; ++i) list.push_back({ActionKind::F, rank, i});
        for (int i = 0; i < size.num_microbatches; ++i) {
            const int ahead = i + num_warmup;
            if (ahead < size.num_microbatches) list.push_back({ActionKind::F, rank, ahead});
            list.push_back({ActionKind::B, rank, i});
        }
    }
    return schedule;
}

}  // namespace vpp
