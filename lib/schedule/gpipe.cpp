#include "schedule/gpipe.hpp"

#include "schedule/placement.hpp"

namespace vpp {

Schedule make_gpipe(const ScheduleSize& size) {
    check_one_stage_per_rank(size, "GPIPE", "INTERLEAVED_1F1B");
    Schedule schedule{"GPIPE", size.num_ranks, size.num_microbatches, place_stages(Placement::Loop, size), {}};
    for (int rank = 0; rank < size.num_ranks; ++rank) {
        std::vector<Action>& list = schedule.actions.emplace_back();
        for (ActionKind kind : {ActionKind::F, ActionKind::B}) {
            for (int i = 0; i < size.num_microbatches; ++i) list.push_back({kind, rank, i});
        }
    }
    return schedule;
}

}  // namespace vpp
