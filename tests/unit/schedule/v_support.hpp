#pragma once
// What the tests of schedules in v placement share.
#include <algorithm>
#include <map>
#include <utility>

#include "schedule/generators.hpp"
#include "unit/schedule/support.hpp"

namespace vpp::testing {

/// Numbers that look random, a pure function of the seed.
class Draws {
  public:
    explicit Draws(uint64_t seed) : key_(mix64(seed)) {}
    /// From 0 to bound - 1.
    int below(int bound) { return static_cast<int>((key_ = mix64(key_)) % static_cast<uint64_t>(bound)); }

  private:
    uint64_t key_;
};

/// Costs of 1 to 9 ticks by stage, transfers of 0 to 3, and one of up to 11 between two stages of the chain.
inline ScheduleCosts random_costs(int num_stages, Draws& draws) {
    ScheduleCosts costs;
    for (int stage = 0; stage < num_stages; ++stage) {
        const Ticks input = 1 + draws.below(9), weight = 1 + draws.below(9);
        costs.stages.push_back({1 + draws.below(9), input + weight, input, weight});
    }
    costs.transfer = draws.below(4);
    costs.transfer_of[draws.below(num_stages)] = draws.below(12);
    return costs;
}

/// F and W of every stage come in the order of the microbatches, and so do the backwards (B or I).
inline void expect_ascending(const Schedule& schedule) {
    std::map<std::pair<int, int>, int> next;
    for (const std::vector<Action>& list : schedule.actions) {
        for (const Action& action : list) {
            const int row = action.kind == ActionKind::F ? 0 : gives_input_gradient(action.kind) ? 1 : 2;
            EXPECT_EQ(action.microbatch, (next[{action.stage, row}]++)) << to_text(action);
            if (action.kind == ActionKind::B) ++next[{action.stage, 2}];
        }
    }
}

/// Makes schedules of the registry over random shapes and proves them over random edges at random costs; every one must
/// be ascending, and must not survive the loss of an action.
inline void expect_random_shapes_proved(const std::string& name, int fewest_microbatches_per_rank, int num_shapes) {
    for (int shape = 0; shape < num_shapes; ++shape) {
        Draws draws(static_cast<uint64_t>(shape));
        const int P = 1 + draws.below(9), fewest = std::max(1, fewest_microbatches_per_rank * P);
        const int M = fewest + draws.below(3 * P + 3);
        SCOPED_TRACE(name + " P " + std::to_string(P) + " M " + std::to_string(M));
        const ScheduleCosts costs = random_costs(2 * P, draws);
        Schedule schedule = make_schedule(name, {.size = {P, 2, M}, .costs = costs});
        const std::vector<ScheduleEdge> edges = random_edges(2 * P, static_cast<uint64_t>(shape));
        ASSERT_NO_THROW(prove(schedule, edges, costs));
        expect_ascending(schedule);
        std::vector<Action>& list = schedule.actions[static_cast<size_t>(draws.below(P))];
        list.erase(list.begin() + draws.below(static_cast<int>(list.size())));
        error_text(ErrorKind::Plan, [&] { prove(schedule, edges); });
    }
}

}  // namespace vpp::testing
