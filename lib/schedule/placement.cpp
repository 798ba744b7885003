#include "schedule/placement.hpp"

namespace vpp {

std::vector<int> place_stages(Placement placement, const ScheduleSize& size) {
    std::vector<int> rank_of_stage;
    for (int round = 0; round < size.stages_per_rank; ++round) {
        const bool downwards = placement == Placement::V && round % 2 == 1;
        for (int i = 0; i < size.num_ranks; ++i) rank_of_stage.push_back(downwards ? size.num_ranks - 1 - i : i);
    }
    return rank_of_stage;
}

}  // namespace vpp
