#include "program/one_microbatch.hpp"

#include "program/lowered_schedule.hpp"

namespace vpp {

namespace {

/// A microbatch through stages of a rank.
void go_there_and_back(std::vector<Action>& list, const std::vector<int>& stages, int microbatch, bool halves) {
    for (int stage : stages) list.push_back({ActionKind::F, stage, microbatch});
    for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
        list.push_back({halves ? ActionKind::I : ActionKind::B, *stage, microbatch});
        if (halves) list.push_back({ActionKind::W, *stage, microbatch});
    }
}

Schedule there_and_back(const Schedule& whole) {
    Schedule compute{whole.name, whole.num_ranks, 1, whole.rank_of_stage, {}, false};
    const bool halves = whole.divides_backward();
    for (int rank = 0; rank < whole.num_ranks; ++rank) {
        go_there_and_back(compute.actions.emplace_back(), whole.stages_of(rank), 0, halves);
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

Program on_one_rank(const Program& program, const std::vector<int>& cuts, int num_microbatches, bool halves) {
    Program one = program;
    one.mesh = {1, 1, 1};
    one.replicas_per_rank = 1;
    one.evaluation.reset();
    one.search.reset();
    one.balance.reset();
    one.costs = {};
    one.training.split = make_stages(one.training.graph, cuts);
    const std::vector<int> rank_of_stage(cuts.size() + 1, 0);
    Schedule compute{"ONE_RANK", 1, num_microbatches, rank_of_stage, {{}}, false};
    for (int microbatch = 0; microbatch < num_microbatches; ++microbatch) {
        go_there_and_back(compute.actions[0], compute.stages_of(0), microbatch, halves);
    }
    one.training.schedule =
        lower_and_prove(compute, one.training.split, MessageOrder::BeforeConsumer, /*reduces=*/false);
    return one;
}

}  // namespace vpp
