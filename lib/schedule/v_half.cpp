#include "schedule/v_half.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "schedule/v_shape.hpp"

namespace vpp {

namespace {

Schedule make_from_block(const ScheduleRequest& request, const char* name, const VBlock& block, int most) {
    Schedule schedule = make_empty_v(request.size, name);
    VRun run = schedule_v_best(request, most, block, building_block_rules());
    check(run.ended, "a building block ends in its own memory");
    schedule.actions = std::move(run.actions);
    return schedule;
}

}  // namespace

VBlock v_half_block(int num_ranks) {
    const int P = num_ranks, t = P % 2 == 0 ? 3 : 0;
    VBlock block{std::vector<Ticks>(static_cast<size_t>(4 * P)), 6};
    const auto start = [&](int hop) -> Ticks& { return block.starts[static_cast<size_t>(hop)]; };
    for (int rank = 0; rank < P; ++rank) {
        start(rank) = 2 * rank;
        start(2 * P - 1 - rank) = 3 * P - 2 - rank;
        start(2 * P + rank) = 3 * P - 1 + t + 2 * rank;
        start(4 * P - 1 - rank) = 6 * P - 2 + t - rank;
    }
    return block;
}

VBlock v_min_block(int num_ranks) {
    const int P = num_ranks, t = P % 3 == 0 ? 2 : 0;
    VBlock block;
    for (int hop = 0; hop < 4 * P; ++hop) block.starts.push_back(hop + (hop < 2 * P ? 0 : t));
    return block;
}

Schedule make_v_half(const ScheduleRequest& request) {
    check_two_stages_per_rank(request.size, "V_HALF");
    const int P = request.size.num_ranks;
    return make_from_block(request, "V_HALF", v_half_block(P), 2 * ((P + 2) / 2));
}

Schedule make_v_min(const ScheduleRequest& request) {
    check_two_stages_per_rank(request.size, "V_MIN");
    const int P = request.size.num_ranks;
    return make_from_block(request, "V_MIN", v_min_block(P), 2 * ((P + 4) / 3));
}

}  // namespace vpp
