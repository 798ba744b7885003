#include "schedule/looped_bfs.hpp"

#include "schedule/placement.hpp"

namespace vpp {

Schedule make_looped_bfs(const ScheduleSize& size) {
    const int P = size.num_ranks, v = size.stages_per_rank, M = size.num_microbatches;
    Schedule schedule{"LOOPED_BFS", P, M, place_stages(Placement::Loop, size), {}};
    for (int rank = 0; rank < P; ++rank) {
        std::vector<Action>& list = schedule.actions.emplace_back();
        for (int local = 0; local < v; ++local) {
            for (int i = 0; i < M; ++i) list.push_back({ActionKind::F, local * P + rank, i});
        }
        for (int local = v - 1; local >= 0; --local) {
            for (int i = 0; i < M; ++i) list.push_back({ActionKind::B, local * P + rank, i});
        }
    }
    return schedule;
}

}  // namespace vpp
