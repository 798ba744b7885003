#include "schedule/v_adaptive.hpp"

#include <utility>

#include "schedule/v_half.hpp"
#include "schedule/v_search.hpp"
#include "schedule/v_shape.hpp"

namespace vpp {

Schedule make_v_adaptive(const ScheduleRequest& request) {
    check_two_stages_per_rank(request.size, "V_ADAPTIVE");
    const int P = request.size.num_ranks, most = v_memory_limit(request, "V_ADAPTIVE");
    VRun best = search_v(request, {.most = most, .most_actions = int64_t{1} << 23});
    for (const VBlock& block : {v_half_block(P), v_min_block(P)}) {
        VRun run = schedule_v_best(request, most, block, building_block_rules());
        if (run < best) best = std::move(run);
    }
    Schedule schedule = make_empty_v(request.size, "V_ADAPTIVE");
    schedule.actions = std::move(best.actions);
    return schedule;
}

}  // namespace vpp
