#pragma once
// Schedules with I and W, and with pairs, for tests: made from those without.
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

/// Every F directly beside a B or I that does not need it, as a pair with it. Such a schedule may deadlock where the
/// given one does not: a pair waits for what both need.
inline Schedule pair_up(Schedule schedule) {
    const auto is_half = [](const Action& a) { return a.kind == ActionKind::F || gives_input_gradient(a.kind); };
    for (std::vector<Action>& list : schedule.actions) {
        for (size_t k = 0; k + 1 < list.size(); ++k) {
            const Action &one = list[k], &other = list[k + 1];
            const bool opposite = (one.kind == ActionKind::F) != (other.kind == ActionKind::F);
            const bool same = one.stage == other.stage && one.microbatch == other.microbatch;
            if (!is_half(one) || !is_half(other) || !opposite || same) continue;
            list[k++].paired = true;
        }
    }
    return schedule;
}

}  // namespace vpp::testing
