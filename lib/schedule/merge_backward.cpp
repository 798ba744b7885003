#include "schedule/merge_backward.hpp"

#include <limits>

#include "schedule/incremental_simulator.hpp"

namespace vpp {

namespace {

constexpr size_t kMostVisits = 20'000'000;  // of actions in all tries

/// An I whose W stands right behind it.
struct Spot {
    size_t rank;
    size_t index;
};

class Merger {
  public:
    Merger(const Schedule& schedule, const ScheduleCosts& costs, SearchObjective objective)
        : schedule_(schedule), costs_(costs), objective_(objective) {
        size_t num_actions = 1;
        for (size_t rank = 0; rank < schedule.actions.size(); ++rank) {
            const std::vector<Action>& list = schedule.actions[rank];
            num_actions += list.size();
            merged_.emplace_back(list.size(), false);
            for (size_t i = 0; i + 1 < list.size(); ++i) {
                const bool same = list[i].stage == list[i + 1].stage && list[i].microbatch == list[i + 1].microbatch;
                const bool halves = list[i].kind == ActionKind::I && list[i + 1].kind == ActionKind::W;
                if (same && halves) spots_.push_back({rank, i});
            }
        }
        tries_left_ = 1 + kMostVisits / num_actions;
        least_cost_ = cost();
    }

    Schedule run() {
        merge(0, spots_.size());
        return merged();
    }

  private:
    void merge(size_t begin, size_t end) {
        if (begin == end || tries_left_ == 0) return;
        --tries_left_;
        set(begin, end, true);
        const Ticks now = cost();
        if (now <= least_cost_) {
            least_cost_ = now;
            return;
        }
        set(begin, end, false);
        if (end - begin == 1) return;
        const size_t middle = begin + (end - begin) / 2;
        merge(begin, middle);
        merge(middle, end);
    }

    void set(size_t begin, size_t end, bool merged) {
        for (size_t k = begin; k < end; ++k) merged_[spots_[k].rank][spots_[k].index] = merged;
    }

    Schedule merged() const {
        Schedule schedule = schedule_;
        for (size_t rank = 0; rank < schedule.actions.size(); ++rank) {
            std::vector<Action>& list = schedule.actions[rank];
            list.clear();
            for (size_t i = 0; i < schedule_.actions[rank].size(); ++i) {
                list.push_back(schedule_.actions[rank][i]);
                if (!merged_[rank][i]) continue;
                list.back().kind = ActionKind::B;
                ++i;  // its W
            }
        }
        return schedule;
    }

    Ticks cost() const {
        const Schedule schedule = merged();
        const OrderGraph graph = make_order_graph(schedule, costs_);
        return IncrementalSimulator(graph, nodes_of(graph, schedule), objective_, std::numeric_limits<int>::max())
            .cost();
    }

    const Schedule& schedule_;
    const ScheduleCosts& costs_;
    SearchObjective objective_;
    std::vector<Spot> spots_;
    std::vector<std::vector<bool>> merged_;  ///< beside the lists: an I that is a B now
    size_t tries_left_ = 0;
    Ticks least_cost_ = 0;
};

}  // namespace

Schedule merge_backwards(const Schedule& schedule, const ScheduleCosts& costs, SearchObjective objective) {
    return Merger(schedule, costs, objective).run();
}

}  // namespace vpp
