#include "schedule/schedule.hpp"

#include <algorithm>

namespace vpp {

std::vector<int> Schedule::stages_of(int rank) const {
    std::vector<int> stages;
    for (int stage = 0; stage < num_stages(); ++stage) {
        if (rank_of_stage[static_cast<size_t>(stage)] == rank) stages.push_back(stage);
    }
    return stages;
}

bool Schedule::divides_backward() const {
    return std::ranges::any_of(actions, [](const std::vector<Action>& list) {
        return std::ranges::any_of(list, [](const Action& action) { return action.kind == ActionKind::I; });
    });
}

std::vector<int> peak_in_flight(const Schedule& schedule) {
    std::vector<int> peaks;
    for (const std::vector<Action>& list : schedule.actions) {
        int now = 0, peak = 0;
        for (const Action& action : list) {
            if (action.kind == ActionKind::F) peak = std::max(peak, ++now);
            const bool freed =
                schedule.forward_only ? action.kind == ActionKind::F : gives_weight_gradient(action.kind);
            if (freed) --now;
        }
        peaks.push_back(peak);
    }
    return peaks;
}

}  // namespace vpp
