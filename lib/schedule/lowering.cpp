#include "schedule/lowering.hpp"

#include <span>

#include "base/error.hpp"
#include "schedule/edges.hpp"
#include "schedule/message_order.hpp"

namespace vpp {

namespace {

class Lowering {
  public:
    Lowering(const Schedule& compute, const std::vector<ScheduleEdge>& edges, bool reduce_gradients)
        : lowered_(compute),
          contributions_left_(reduce_gradients ? count_contributions(compute) : std::vector<int>()),
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
    /// By stage: B and W that are still to come; 0 for stages that have a REDUCE_GRAD of their own.
    static std::vector<int> count_contributions(const Schedule& compute) {
        std::vector<int> counts(compute.rank_of_stage.size(), 0), reductions = counts;
        for (const std::vector<Action>& list : compute.actions) {
            for (const Action& action : list) {
                const auto stage = static_cast<size_t>(action.stage);
                check(stage < counts.size(), "an action belongs to a stage");
                if (gives_weight_gradient(action.kind)) ++counts[stage];
                if (action.kind == ActionKind::ReduceGrad) ++reductions[stage];
            }
        }
        for (size_t stage = 0; stage < counts.size(); ++stage) {
            if (reductions[stage] > 0) counts[stage] = 0;
        }
        return counts;
    }

    /// One action, or a pair that runs together: their receives, themselves, their sends.
    void append(std::span<const Action> together, std::vector<Action>& list) {
        for (const Action& action : together) append_receives(action, list);
        list.insert(list.end(), together.begin(), together.end());
        for (const Action& action : together) append_sends(action, list);
        if (contributions_left_.empty()) return;
        for (const Action& action : together) {
            if (!gives_weight_gradient(action.kind)) continue;
            const bool is_last = --contributions_left_[static_cast<size_t>(action.stage)] == 0;
            if (is_last) list.push_back({ActionKind::ReduceGrad, action.stage});
        }
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
    std::vector<int> contributions_left_;  ///< by stage; empty: nothing is reduced
    std::vector<StageRoutes> routes_;
};

}  // namespace

Schedule lower(const Schedule& compute, const std::vector<ScheduleEdge>& edges, const LoweringOptions& options) {
    Schedule lowered = Lowering(compute, edges, options.reduce_gradients).run();
    if (options.order == MessageOrder::Channels) return order_channels(std::move(lowered));
    if (options.order == MessageOrder::Global) return order_globally(std::move(lowered), options.costs);
    return lowered;
}

}  // namespace vpp
