#pragma once
// Schedules that nobody would write, for transports that have to carry any.
#include <algorithm>
#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

#include "base/random.hpp"
#include "schedule/lowering.hpp"
#include "unit/schedule/support.hpp"

namespace vpp::test {

/// A model and an order of its actions, drawn so that they end: again and again one of the actions that could run now.
class RandomSchedule {
  public:
    explicit RandomSchedule(uint64_t seed) : key_(mix64(seed)) {
        const int num_ranks = 2 + draw(3), num_stages = num_ranks + draw(2 * num_ranks);
        compute_ = {"RANDOM", num_ranks, 1 + draw(5), {}, {}, draw(4) == 0};
        compute_.actions.resize(static_cast<size_t>(num_ranks));
        for (int stage = 0; stage < num_stages; ++stage) compute_.rank_of_stage.push_back(draw(num_ranks));
        edges = vpp::testing::random_edges(num_stages, key_);
        splits_ = draw(2) == 0;
        while (place_one()) {
        }
    }

    Schedule lowered(MessageOrder order) const { return lower(compute_, edges, {.order = order}); }
    std::vector<ScheduleEdge> edges;

  private:
    int draw(int bound) { return static_cast<int>((key_ = mix64(key_)) % static_cast<uint64_t>(bound)); }

    bool has(ActionKind kind, int stage, int microbatch) const { return placed_.contains({kind, stage, microbatch}); }
    ActionKind backward() const { return splits_ ? ActionKind::I : ActionKind::B; }

    bool can_run(ActionKind kind, int stage, int microbatch) const {
        if (has(kind, stage, microbatch)) return false;
        if (kind == ActionKind::W) return has(ActionKind::I, stage, microbatch);
        const bool is_forward = kind == ActionKind::F;
        if (!is_forward && !has(ActionKind::F, stage, microbatch)) return false;
        return std::all_of(edges.begin(), edges.end(), [&](const ScheduleEdge& edge) {
            if (is_forward) return edge.consumer != stage || has(ActionKind::F, edge.producer, microbatch);
            if (!edge.has_gradient || edge.gradient_to != stage) return true;
            return has(backward(), edge.consumer, microbatch);
        });
    }

    bool place_one() {
        std::vector<ActionKind> kinds{ActionKind::F};
        if (!compute_.forward_only) kinds.push_back(backward());
        if (!compute_.forward_only && splits_) kinds.push_back(ActionKind::W);
        std::vector<Action> possible;
        for (ActionKind kind : kinds) {
            for (int stage = 0; stage < compute_.num_stages(); ++stage) {
                for (int microbatch = 0; microbatch < compute_.num_microbatches; ++microbatch) {
                    if (can_run(kind, stage, microbatch)) possible.push_back({kind, stage, microbatch});
                }
            }
        }
        if (possible.empty()) return false;
        const Action& action = possible[static_cast<size_t>(draw(static_cast<int>(possible.size())))];
        const auto rank = static_cast<size_t>(compute_.rank_of_stage[static_cast<size_t>(action.stage)]);
        compute_.actions[rank].push_back(action);
        placed_.insert({action.kind, action.stage, action.microbatch});
        return true;
    }

    uint64_t key_;
    bool splits_ = false;
    Schedule compute_;
    std::set<std::tuple<ActionKind, int, int>> placed_;
};

}  // namespace vpp::test
