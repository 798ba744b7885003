#pragma once
// Schedules with I and W for tests, made from those with B.
#include "schedule/schedule.hpp"

namespace vpp::testing {

/// Every B as I and, `lag` backwards of its rank later, W.
inline Schedule split_backwards(Schedule schedule, size_t lag = 1) {
    for (std::vector<Action>& list : schedule.actions) {
        std::vector<Action> split, late;
        for (const Action& action : list) {
            if (action.kind != ActionKind::B) {
                split.push_back(action);
                continue;
            }
            split.push_back({ActionKind::I, action.stage, action.microbatch});
            late.push_back({ActionKind::W, action.stage, action.microbatch});
            if (late.size() <= lag) continue;
            split.push_back(late.front());
            late.erase(late.begin());
        }
        split.insert(split.end(), late.begin(), late.end());
        list = split;
    }
    return schedule;
}

}  // namespace vpp::testing
