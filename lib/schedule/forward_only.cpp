#include "schedule/forward_only.hpp"

#include <algorithm>

#include "schedule/placement.hpp"

namespace vpp {

Schedule make_forward_only(const ScheduleSize& size) {
    Schedule schedule{
        "FORWARD_ONLY", size.num_ranks, size.num_microbatches, place_stages(Placement::Loop, size), {}, true};
    for (int rank = 0; rank < size.num_ranks; ++rank) {
        std::vector<Action>& list = schedule.actions.emplace_back();
        for (int group = 0; group < size.num_microbatches; group += size.num_ranks) {
            const int group_end = group + std::min(size.num_ranks, size.num_microbatches - group);
            for (int stage = rank; stage < size.num_stages(); stage += size.num_ranks) {
                for (int i = group; i < group_end; ++i) list.push_back({ActionKind::F, stage, i});
            }
        }
    }
    return schedule;
}

Schedule forwards_of(const Schedule& schedule) {
    Schedule forwards = schedule;
    forwards.name = "FORWARD_ONLY";
    forwards.forward_only = true;
    for (std::vector<Action>& list : forwards.actions) {
        list.erase(std::remove_if(list.begin(), list.end(), [](const Action& a) { return a.kind != ActionKind::F; }),
                   list.end());
        for (Action& action : list) action.paired = false;
    }
    return forwards;
}

}  // namespace vpp
