#include "schedule/lowering.hpp"

#include "base/error.hpp"
#include "schedule/edges.hpp"

namespace vpp {

namespace {

/// Appends the receives, the action and the sends.
void append_with_transfers(const Action& action, const std::vector<Route>& in, const std::vector<Route>& out,
                           const std::vector<int>& rank_of_stage, std::vector<Action>& list) {
    const auto rank = [&](int stage) { return rank_of_stage[static_cast<size_t>(stage)]; };
    for (const Route& route : in) {
        if (rank(route.from) == rank(route.to)) continue;
        list.push_back({route.receive_kind(), action.stage, action.microbatch, route.edge, rank(route.from)});
    }
    list.push_back(action);
    for (const Route& route : out) {
        if (rank(route.from) == rank(route.to)) continue;
        list.push_back({route.send_kind(), action.stage, action.microbatch, route.edge, rank(route.to)});
    }
}

}  // namespace

Schedule lower(const Schedule& compute, const std::vector<ScheduleEdge>& edges) {
    const int num_stages = compute.num_stages();
    const std::vector<StageRoutes> routes =
        routes_by_stage(routes_of(edges, num_stages, compute.forward_only), num_stages);
    Schedule lowered = compute;
    for (std::vector<Action>& list : lowered.actions) {
        std::vector<Action> computing;
        computing.swap(list);
        for (const Action& action : computing) {
            check(!is_transfer(action.kind), "a schedule is lowered once");
            check(action.stage >= 0 && action.stage < num_stages, "an action belongs to a stage");
            const StageRoutes& stage = routes[static_cast<size_t>(action.stage)];
            if (action.kind == ActionKind::F) {
                append_with_transfers(action, stage.values_in, stage.values_out, lowered.rank_of_stage, list);
            } else if (gives_input_gradient(action.kind)) {
                append_with_transfers(action, stage.gradients_in, stage.gradients_out, lowered.rank_of_stage, list);
            } else {
                list.push_back(action);
            }
        }
    }
    return lowered;
}

}  // namespace vpp
