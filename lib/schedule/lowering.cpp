#include "schedule/lowering.hpp"

#include <span>

#include "base/error.hpp"
#include "schedule/edges.hpp"

namespace vpp {

namespace {

class Lowering {
  public:
    Lowering(const Schedule& compute, const std::vector<ScheduleEdge>& edges)
        : lowered_(compute),
          routes_(routes_by_stage(routes_of(edges, compute.num_stages(), compute.forward_only), compute.num_stages())) {
    }

    Schedule run() {
        for (std::vector<Action>& list : lowered_.actions) {
            std::vector<Action> computing;
            computing.swap(list);
            for (size_t i = 0; i < computing.size();) {
                const size_t count = computing[i].paired && i + 1 < computing.size() ? 2 : 1;
                append({computing.data() + i, count}, list);
                i += count;
            }
        }
        return std::move(lowered_);
    }

  private:
    /// One action, or a pair that runs together: their receives, themselves, their sends.
    void append(std::span<const Action> together, std::vector<Action>& list) const {
        for (const Action& action : together) append_receives(action, list);
        list.insert(list.end(), together.begin(), together.end());
        for (const Action& action : together) append_sends(action, list);
    }

    int rank(int stage) const { return lowered_.rank_of_stage[static_cast<size_t>(stage)]; }

    const StageRoutes& routes(const Action& action) const {
        check(!is_transfer(action.kind), "a schedule is lowered once");
        check(action.stage >= 0 && action.stage < lowered_.num_stages(), "an action belongs to a stage");
        return routes_[static_cast<size_t>(action.stage)];
    }

    void append_receives(const Action& action, std::vector<Action>& list) const {
        const StageRoutes& stage = routes(action);
        if (action.kind == ActionKind::F) append_receives(action, stage.values_in, list);
        if (gives_input_gradient(action.kind)) append_receives(action, stage.gradients_in, list);
        if (gives_weight_gradient(action.kind)) append_receives(action, stage.tied_in, list);
    }

    void append_receives(const Action& action, const std::vector<Route>& in, std::vector<Action>& list) const {
        for (const Route& route : in) {
            if (rank(route.from) == rank(route.to)) continue;
            list.push_back({route.receive_kind(), action.stage, action.microbatch, route.edge, rank(route.from)});
        }
    }

    void append_sends(const Action& action, std::vector<Action>& list) const {
        const StageRoutes& stage = routes(action);
        if (action.kind == ActionKind::F) append_sends(action, stage.values_out, list);
        if (gives_input_gradient(action.kind)) append_sends(action, stage.gradients_out, list);
        if (gives_weight_gradient(action.kind)) append_sends(action, stage.tied_out, list);
    }

    void append_sends(const Action& action, const std::vector<Route>& out, std::vector<Action>& list) const {
        for (const Route& route : out) {
            if (rank(route.from) == rank(route.to)) continue;
            list.push_back({route.send_kind(), action.stage, action.microbatch, route.edge, rank(route.to)});
        }
    }

    Schedule lowered_;
    std::vector<StageRoutes> routes_;
};

}  // namespace

Schedule lower(const Schedule& compute, const std::vector<ScheduleEdge>& edges) {
    return Lowering(compute, edges).run();
}

}  // namespace vpp
