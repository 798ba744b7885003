#include "program/one_microbatch.hpp"

#include <algorithm>

#include "program/lowered_schedule.hpp"

namespace vpp {

namespace {

bool has_halves(const Schedule& schedule) {
    return std::ranges::any_of(schedule.actions, [](const std::vector<Action>& list) {
        return std::ranges::any_of(list, [](const Action& action) { return action.kind == ActionKind::I; });
    });
}

Schedule there_and_back(const Schedule& whole) {
    Schedule compute{whole.name, whole.num_ranks, 1, whole.rank_of_stage, {}, false};
    const bool halves = has_halves(whole);
    for (int rank = 0; rank < whole.num_ranks; ++rank) {
        std::vector<Action>& list = compute.actions.emplace_back();
        const std::vector<int> stages = whole.stages_of(rank);
        for (int stage : stages) list.push_back({ActionKind::F, stage});
        for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
            list.push_back({halves ? ActionKind::I : ActionKind::B, *stage});
            if (halves) list.push_back({ActionKind::W, *stage});
        }
    }
    return compute;
}

}  // namespace

Program one_microbatch(const Program& program, MessageOrder order) {
    Program one = program;
    one.evaluation.reset();
    one.search.reset();
    one.training.schedule =
        lower_and_prove(there_and_back(program.training.schedule), program.training.split, order, program.mesh.dp > 1);
    return one;
}

}  // namespace vpp
