#include "schedule/lowering.hpp"

#include <algorithm>
#include <optional>
#include <span>

#include "base/error.hpp"
#include "schedule/edges.hpp"
#include "schedule/message_order.hpp"

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
    void append(std::span<const Action> together, std::vector<Action>& list) {
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

/// Behind the stage's last B or W, the other one of its pair, and what is sent then; none for a stage without.
std::optional<size_t> place_of_reduction(const std::vector<Action>& list, int stage) {
    std::optional<size_t> last;
    for (size_t i = 0; i < list.size(); ++i) {
        if (list[i].stage == stage && gives_weight_gradient(list[i].kind)) last = i;
    }
    if (!last) return last;
    size_t place = *last + (list[*last].paired ? 2 : 1);
    while (place < list.size() && is_send(list[place].kind)) ++place;
    return place;
}

}  // namespace

void add_reductions(Schedule& lowered) {
    for (int rank = 0; rank < lowered.num_ranks; ++rank) {
        std::vector<Action>& list = lowered.actions[static_cast<size_t>(rank)];
        for (int stage : lowered.stages_of(rank)) {
            const bool is_there = std::any_of(list.begin(), list.end(), [&](const Action& action) {
                return action.kind == ActionKind::ReduceGrad && action.stage == stage;
            });
            const std::optional<size_t> place = place_of_reduction(list, stage);
            if (is_there || !place) continue;
            list.insert(list.begin() + static_cast<std::ptrdiff_t>(*place), {ActionKind::ReduceGrad, stage});
        }
    }
}

Schedule lower(const Schedule& compute, const std::vector<ScheduleEdge>& edges, const LoweringOptions& options) {
    Schedule lowered = Lowering(compute, edges).run();
    if (options.reduce_gradients) add_reductions(lowered);
    if (options.order == MessageOrder::Channels) return order_channels(std::move(lowered));
    if (options.order == MessageOrder::Global) return order_globally(std::move(lowered), options.costs);
    return lowered;
}

}  // namespace vpp
