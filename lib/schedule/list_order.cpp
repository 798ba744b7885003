#include "schedule/list_order.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.hpp"

namespace vpp {

namespace {

/// What a rank could do next, the best first.
struct Next {
    Ticks start = 0;
    int urgency = 0;  ///< 0: I or B, 1: F, 2: W
    int microbatch = 0;
    int stages_above = 0;

    auto operator<=>(const Next&) const = default;
};

struct StageState {
    std::vector<Ticks> forward_ends, gradient_ends;  ///< by microbatch
    int weights = 0;

    int forwards() const { return static_cast<int>(forward_ends.size()); }
    int gradients() const { return static_cast<int>(gradient_ends.size()); }
};

class ListOrder {
  public:
    ListOrder(const ScheduleRequest& request, Placement placement, bool split)
        : request_(request), split_(split), most_inside_(most_inside(request)) {
        const ScheduleSize& size = request.size;
        schedule_ = {"LIST", size.num_ranks, size.num_microbatches, place_stages(placement, size), {}};
        schedule_.actions.resize(static_cast<size_t>(size.num_ranks));
        for (int rank = 0; rank < size.num_ranks; ++rank) stages_of_.push_back(schedule_.stages_of(rank));
        stages_.resize(static_cast<size_t>(size.num_stages()));
        clocks_.assign(static_cast<size_t>(size.num_ranks), 0);
        nexts_.resize(static_cast<size_t>(size.num_ranks));
    }

    Schedule run() {
        for (size_t rank = 0; rank < nexts_.size(); ++rank) nexts_[rank] = choose(rank);
        while (true) {
            size_t first = nexts_.size();
            for (size_t rank = 0; rank < nexts_.size(); ++rank) {
                const bool sooner = nexts_[rank] && (first == nexts_.size() || *nexts_[rank] < *nexts_[first]);
                if (sooner) first = rank;
            }
            if (first == nexts_.size()) break;
            act(first, *nexts_[first]);
        }
        for (const StageState& stage : stages_) {
            check(stage.weights == schedule_.num_microbatches, "a list order ends");
        }
        return std::move(schedule_);
    }

  private:
    static int most_inside(const ScheduleRequest& request) {
        const auto all = static_cast<double>(request.size.num_microbatches);
        const int most = static_cast<int>(std::min(request.memory_limit.value_or(all), all));
        check(most >= 1, "a rank holds at least one microbatch");
        return most;
    }

    int num_stages() const { return schedule_.num_stages(); }
    const StageState& state(int stage) const { return stages_[static_cast<size_t>(stage)]; }
    size_t rank_of(int stage) const { return static_cast<size_t>(schedule_.rank_of_stage[static_cast<size_t>(stage)]); }

    /// When what the stages `below` and `below` + 1 exchange has come over.
    Ticks arrival(Ticks end, int below) const {
        return rank_of(below) == rank_of(below + 1) ? end : end + request_.costs.of_transfer(below);
    }

    std::optional<Next> choose(size_t rank) const {
        std::optional<Next> best;
        for (int stage : stages_of_[rank]) {
            const auto offer = [&](int urgency, int microbatch, Ticks ready) {
                const Next next{std::max(clocks_[rank], ready), urgency, microbatch, num_stages() - 1 - stage};
                if (!best || next < *best) best = next;
            };
            const StageState& own = state(stage);
            if (const auto ready = gradient_ready(stage)) offer(0, own.gradients(), *ready);
            if (const auto ready = forward_ready(stage, rank)) offer(1, own.forwards(), *ready);
            if (own.weights < own.gradients()) offer(2, own.weights, 0);
        }
        return best;
    }

    std::optional<Ticks> gradient_ready(int stage) const {
        const int microbatch = state(stage).gradients();
        if (microbatch >= state(stage).forwards()) return std::nullopt;
        if (stage + 1 == num_stages()) return 0;
        if (microbatch >= state(stage + 1).gradients()) return std::nullopt;
        return arrival(state(stage + 1).gradient_ends[static_cast<size_t>(microbatch)], stage);
    }

    std::optional<Ticks> forward_ready(int stage, size_t rank) const {
        const int microbatch = state(stage).forwards();
        if (microbatch >= schedule_.num_microbatches) return std::nullopt;
        if (stage == stages_of_[rank].front() && microbatch - num_finished(rank) >= most_inside_) return std::nullopt;
        if (stage == 0) return 0;
        if (microbatch >= state(stage - 1).forwards()) return std::nullopt;
        return arrival(state(stage - 1).forward_ends[static_cast<size_t>(microbatch)], stage - 1);
    }

    /// Microbatches that have left all stages of the rank.
    int num_finished(size_t rank) const {
        int finished = schedule_.num_microbatches;
        for (int stage : stages_of_[rank]) finished = std::min(finished, state(stage).weights);
        return finished;
    }

    void act(size_t rank, const Next& next) {
        const int number = num_stages() - 1 - next.stages_above;
        StageState& stage = stages_[static_cast<size_t>(number)];
        const ActionKind backward = split_ ? ActionKind::I : ActionKind::B;
        const ActionKind kind = next.urgency == 0 ? backward : next.urgency == 1 ? ActionKind::F : ActionKind::W;
        const Ticks end = next.start + request_.costs.of_stage(number).of(kind);
        schedule_.actions[rank].push_back({kind, number, next.microbatch});
        clocks_[rank] = end;
        if (kind == ActionKind::F) stage.forward_ends.push_back(end);
        if (gives_input_gradient(kind)) stage.gradient_ends.push_back(end);
        if (gives_weight_gradient(kind)) ++stage.weights;
        nexts_[rank] = choose(rank);
        for (int neighbour : {number - 1, number + 1}) {
            if (neighbour >= 0 && neighbour < num_stages()) nexts_[rank_of(neighbour)] = choose(rank_of(neighbour));
        }
    }

    const ScheduleRequest& request_;
    bool split_;
    int most_inside_;
    Schedule schedule_;
    std::vector<std::vector<int>> stages_of_;
    std::vector<StageState> stages_;
    std::vector<Ticks> clocks_;               ///< by rank
    std::vector<std::optional<Next>> nexts_;  ///< by rank
};

}  // namespace

Schedule make_list_order(const ScheduleRequest& request, Placement placement, bool split_backward) {
    return ListOrder(request, placement, split_backward).run();
}

}  // namespace vpp
