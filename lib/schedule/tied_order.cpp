#include "schedule/tied_order.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <limits>
#include <optional>

#include "base/error.hpp"
#include "schedule/edges.hpp"

namespace vpp {

namespace {

constexpr Ticks kNotStarted = std::numeric_limits<Ticks>::max();

/// What other stages wait for: F, the gradients of the inputs, the gradients of the weights.
enum class Result { Value, InputGradient, WeightGradient };

/// Runs the lists in time. What is put off waits beside its rank's list and goes first as soon as it can.
class TimedRun {
  public:
    TimedRun(const Schedule& compute, const std::vector<ScheduleEdge>& edges, const ScheduleCosts& costs)
        : compute_(compute),
          costs_(costs),
          routes_(routes_by_stage(routes_of(edges, compute.num_stages(), compute.forward_only), compute.num_stages())),
          next_(compute.actions.size(), 0),
          clocks_(compute.actions.size(), 0),
          put_off_(compute.actions.size()),
          num_put_off_(compute.rank_of_stage.size(), 0),
          starts_(compute.actions.size(), kNotStarted) {
        for (std::vector<Ticks>& ends : ends_) {
            ends.assign(compute.rank_of_stage.size() * static_cast<size_t>(compute.num_microbatches), kNotStarted);
        }
        ordered_ = compute;
        for (std::vector<Action>& list : ordered_.actions) list.clear();
    }

    Schedule run() {
        for (size_t rank = 0; rank < starts_.size(); ++rank) starts_[rank] = find_start(rank);
        while (true) {
            const auto first = std::min_element(starts_.begin(), starts_.end());
            if (first == starts_.end() || *first == kNotStarted) break;
            const auto rank = static_cast<size_t>(first - starts_.begin());
            changed_ = {rank};
            act(rank);
            for (size_t one : changed_) starts_[one] = find_start(one);
        }
        for (size_t rank = 0; rank < next_.size(); ++rank) append_rest(rank);
        return std::move(ordered_);
    }

  private:
    int rank_of(int stage) const { return compute_.rank_of_stage[static_cast<size_t>(stage)]; }
    size_t at(int stage, int microbatch) const {
        return static_cast<size_t>(stage) * static_cast<size_t>(compute_.num_microbatches) +
               static_cast<size_t>(microbatch);
    }
    Ticks& end_of(Result result, int stage, int microbatch) {
        return ends_[static_cast<size_t>(result)][at(stage, microbatch)];
    }

    /// When all that comes by these routes has arrived; kNever: not everything is made yet.
    Ticks arrival(const std::vector<Route>& routes, Result result, int microbatch) {
        Ticks latest = 0;
        for (const Route& route : routes) {
            const Ticks made = end_of(result, route.from, microbatch);
            if (made == kNotStarted) return kNotStarted;
            const bool on_one_rank = rank_of(route.from) == rank_of(route.to);
            latest = std::max(latest, made + (on_one_rank ? 0 : costs_.of_transfer(route.edge)));
        }
        return latest;
    }

    /// When an action may start as far as other stages are concerned, gradients of tied parameters left out.
    Ticks ready(const Action& action) {
        const StageRoutes& routes = routes_.at(static_cast<size_t>(action.stage));
        if (action.kind == ActionKind::F) return arrival(routes.values_in, Result::Value, action.microbatch);
        if (!gives_input_gradient(action.kind)) return 0;
        return arrival(routes.gradients_in, Result::InputGradient, action.microbatch);
    }
    Ticks tied_ready(const Action& action) {
        const StageRoutes& routes = routes_.at(static_cast<size_t>(action.stage));
        return arrival(routes.tied_in, Result::WeightGradient, action.microbatch);
    }

    /// The next action of a list, or the pair that it begins.
    size_t num_together(size_t rank) const {
        const std::vector<Action>& list = compute_.actions[rank];
        return list[next_[rank]].paired && next_[rank] + 1 < list.size() ? 2 : 1;
    }
    bool has_next(size_t rank) const { return next_[rank] < compute_.actions[rank].size(); }

    Ticks list_start(size_t rank) {
        if (!has_next(rank)) return kNotStarted;
        Ticks start = clocks_[rank];
        for (size_t k = 0; k < num_together(rank); ++k) {
            start = std::max(start, ready(compute_.actions[rank][next_[rank] + k]));
        }
        return start;
    }
    /// The first put-off W that can start, by stages in the order in which they were put off.
    std::optional<size_t> first_put_off(size_t rank, Ticks& start) {
        std::optional<size_t> best;
        std::vector<int> seen;
        for (size_t k = 0; k < put_off_[rank].size(); ++k) {
            const Action& action = put_off_[rank][k];
            if (std::find(seen.begin(), seen.end(), action.stage) != seen.end()) continue;
            seen.push_back(action.stage);
            const Ticks arrived = tied_ready(action);
            if (arrived == kNotStarted) continue;
            const Ticks possible = std::max(clocks_[rank], arrived);
            if (best && possible >= start) continue;
            best = k;
            start = possible;
        }
        return best;
    }

    Ticks find_start(size_t rank) {
        Ticks start = kNotStarted;
        first_put_off(rank, start);
        return std::min(start, list_start(rank));
    }

    void act(size_t rank) {
        Ticks start = kNotStarted;
        const std::optional<size_t> waiting = first_put_off(rank, start);
        const Ticks of_list = list_start(rank);
        if (waiting && start <= of_list) {
            const Action action = put_off_[rank][*waiting];
            put_off_[rank].erase(put_off_[rank].begin() + static_cast<std::ptrdiff_t>(*waiting));
            --num_put_off_[static_cast<size_t>(action.stage)];
            finish(rank, action, start + costs_.of_stage(action.stage).of(action.kind));
        } else {
            act_on_list(rank, of_list);
        }
    }

    void act_on_list(size_t rank, Ticks start) {
        const size_t count = num_together(rank);
        std::array<Action, 2> actions;
        for (size_t k = 0; k < count; ++k) actions[k] = compute_.actions[rank][next_[rank]++];
        if (actions[0].kind == ActionKind::W && waits(actions[0], start)) return put_off(rank, actions[0]);
        for (size_t k = 0; k < count; ++k) {
            if (actions[k].kind != ActionKind::B || !waits(actions[k], start)) continue;
            actions[k].kind = ActionKind::I;
            put_off(rank, {ActionKind::W, actions[k].stage, actions[k].microbatch});
        }
        const Ticks end = start + (count == 2 ? of_pair(actions[0], actions[1])
                                              : costs_.of_stage(actions[0].stage).of(actions[0].kind));
        for (size_t k = 0; k < count; ++k) finish(rank, actions[k], end);
    }

    Ticks of_pair(const Action& one, const Action& other) const {
        return one.kind == ActionKind::F ? costs_.of_pair(one, other) : costs_.of_pair(other, one);
    }

    /// Whether a W or B would have to wait for a tied gradient, or for an earlier W of its stage that does.
    bool waits(const Action& action, Ticks start) {
        return num_put_off_[static_cast<size_t>(action.stage)] > 0 || tied_ready(action) > start;
    }

    void put_off(size_t rank, const Action& weight) {
        put_off_[rank].push_back(weight);
        ++num_put_off_[static_cast<size_t>(weight.stage)];
    }

    void finish(size_t rank, const Action& action, Ticks end) {
        clocks_[rank] = end;
        ordered_.actions[rank].push_back(action);
        const auto made = [&](Result result) { end_of(result, action.stage, action.microbatch) = end; };
        if (action.kind == ActionKind::F) made(Result::Value);
        if (gives_input_gradient(action.kind)) made(Result::InputGradient);
        if (gives_weight_gradient(action.kind)) made(Result::WeightGradient);
        const StageRoutes& routes = routes_[static_cast<size_t>(action.stage)];
        for (const auto* out : {&routes.values_out, &routes.gradients_out, &routes.tied_out}) {
            for (const Route& route : *out) changed_.push_back(static_cast<size_t>(rank_of(route.to)));
        }
    }

    /// Of lists that do not end.
    void append_rest(size_t rank) {
        std::vector<Action>& list = ordered_.actions[rank];
        const std::vector<Action>& given = compute_.actions[rank];
        list.insert(list.end(), given.begin() + static_cast<std::ptrdiff_t>(next_[rank]), given.end());
        list.insert(list.end(), put_off_[rank].begin(), put_off_[rank].end());
    }

    const Schedule& compute_;
    const ScheduleCosts& costs_;
    const std::vector<StageRoutes> routes_;
    std::array<std::vector<Ticks>, 3> ends_;   ///< [result][stage, microbatch]; kNever: not made yet
    std::vector<size_t> next_;                 ///< by rank: into its list
    std::vector<Ticks> clocks_;                ///< by rank
    std::vector<std::deque<Action>> put_off_;  ///< by rank
    std::vector<int> num_put_off_;             ///< by stage
    std::vector<Ticks> starts_;                ///< by rank: of what it does next; kNever: it waits
    std::vector<size_t> changed_;              ///< ranks whose start may be another one now
    Schedule ordered_;
};

}  // namespace

Schedule order_tied(const Schedule& compute, const std::vector<ScheduleEdge>& edges, const ScheduleCosts& costs) {
    const bool has_tied = std::any_of(edges.begin(), edges.end(), [](const ScheduleEdge& edge) { return edge.tied; });
    return has_tied && compute.divides_backward() ? TimedRun(compute, edges, costs).run() : compute;
}

}  // namespace vpp
