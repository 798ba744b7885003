#include "schedule/zero_bubble_greedy.hpp"

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

#include "base/error.hpp"
#include "schedule/placement.hpp"

namespace vpp {

namespace {

struct GreedyFlags {
    bool late_warmup = false;
    bool prefer_input_gradient = false;
    bool fill_always = false;
};

/// A stage, which is a rank, while its list grows. Counts are those of finished actions, so they are the next
/// microbatches too.
struct GreedyStage {
    StageCosts costs;
    std::vector<Action> list;
    std::vector<Ticks> forward_ends, gradient_ends;  ///< by microbatch: F and I
    int weight_gradients = 0;
    Ticks clock = 0;
    Ticks bubble = 0;  ///< waits since the first F

    int forwards() const { return static_cast<int>(forward_ends.size()); }
    int input_gradients() const { return static_cast<int>(gradient_ends.size()); }
    int64_t held(const ActivationSize& activation) const {
        return activation.whole * (forwards() - input_gradients()) +
               activation.until_weight * (input_gradients() - weight_gradients);
    }
    bool has_pending() const { return input_gradients() > weight_gradients; }
    Ticks span() const { return clock - (forward_ends.front() - costs.forward); }
};

/// One pass with one combination of flags.
class GreedyPass {
  public:
    GreedyPass(const ScheduleRequest& request, double limit, GreedyFlags flags)
        : flags_(flags),
          num_microbatches_(request.size.num_microbatches),
          most_in_flight_(static_cast<int>(limit)),
          limit_(static_cast<int64_t>(limit * static_cast<double>(request.activation.whole))),
          activation_(request.activation),
          stages_(static_cast<size_t>(request.size.num_ranks)) {
        for (int s = 0; s < request.size.num_ranks; ++s) {
            stages_[static_cast<size_t>(s)].costs = request.costs.of_stage(s);
            transfers_.push_back(s == 0 ? 0 : request.costs.of_transfer(s - 1));
        }
    }

    void run() {
        warm_up();
        run_input_gradients();
        while (stages_.front().input_gradients() < num_microbatches_) run_round();
        for (size_t s = 0; s < stages_.size(); ++s) {
            while (stages_[s].has_pending()) add_weight_gradient(s);
        }
    }

    /// The plain list in time, instead of run.
    void run_by_time() {
        while (true) {
            std::optional<Next> earliest;
            for (size_t s = 0; s < stages_.size(); ++s) {
                const std::optional<Next> next = next_by_time(s);
                if (next && (!earliest || next->start < earliest->start)) earliest = next;
            }
            if (!earliest) return;
            if (earliest->kind == ActionKind::F) add_forward(earliest->stage);
            if (earliest->kind == ActionKind::I) add_input_gradient(earliest->stage);
            if (earliest->kind == ActionKind::W) add_weight_gradient(earliest->stage);
        }
    }

    Ticks span() const {
        Ticks span = 0;
        for (const GreedyStage& stage : stages_) span = std::max(span, stage.span());
        return span;
    }
    Ticks makespan() const {
        Ticks makespan = 0;
        for (const GreedyStage& stage : stages_) makespan = std::max(makespan, stage.clock);
        return makespan;
    }
    ActionLists lists() const {
        ActionLists lists;
        for (const GreedyStage& stage : stages_) lists.push_back(stage.list);
        return lists;
    }

  private:
    struct Next {
        size_t stage = 0;
        ActionKind kind = ActionKind::F;
        Ticks start = 0;
    };

    /// I if it can start at once, else F if it can, else W; what starts first if none can. None at the end, or while
    /// the stage waits for what has not started yet.
    std::optional<Next> next_by_time(size_t s) const {
        const GreedyStage& stage = stages_[s];
        std::optional<Next> next;
        const auto offer = [&](ActionKind kind, Ticks ready) {
            const Ticks start = std::max(stage.clock, ready);
            if (!next || start < next->start) next = Next{s, kind, start};
        };
        if (has_input_gradient(s)) offer(ActionKind::I, gradient_arrival(s));
        const bool has_forward = stage.forwards() < (s == 0 ? num_microbatches_ : stages_[s - 1].forwards());
        if (has_forward && stage.held(activation_) + activation_.whole <= limit_)
            offer(ActionKind::F, value_arrival(s));
        if (stage.has_pending()) offer(ActionKind::W, 0);
        return next;
    }

    /// When the input of the next F is there.
    Ticks value_arrival(size_t s) const {
        return s == 0 ? 0 : stages_[s - 1].forward_ends.at(static_cast<size_t>(stages_[s].forwards())) + transfers_[s];
    }
    /// When the gradient for the next I is there.
    Ticks gradient_arrival(size_t s) const {
        if (s + 1 == stages_.size()) return 0;
        return stages_[s + 1].gradient_ends.at(static_cast<size_t>(stages_[s].input_gradients())) + transfers_[s + 1];
    }

    void warm_up() {
        const std::vector<int> counts = count_warmup();
        for (size_t s = 0; s < stages_.size(); ++s) {
            for (int i = 0; i < counts[s]; ++i) add_forward(s);
        }
    }

    /// How many F each stage runs before its first I.
    std::vector<int> count_warmup() const {
        std::vector<Ticks> first_end, pace;  // of F(0); from one F to the next: the slowest stage so far
        for (size_t s = 0; s < stages_.size(); ++s) {
            const Ticks start = s == 0 ? 0 : first_end.back() + transfers_[s];
            pace.push_back(std::max(s == 0 ? 0 : pace.back(), stages_[s].costs.forward));
            first_end.push_back(start + stages_[s].costs.forward);
        }
        std::vector<int> counts(stages_.size(), 1);
        Ticks arrival = first_end.back();  // of the first gradient
        for (size_t s = stages_.size(); s-- > 0;) {
            Ticks end = first_end[s];
            while (counts[s] < std::min(most_in_flight_, num_microbatches_)) {
                const bool fits = flags_.late_warmup ? end < arrival : end + pace[s] <= arrival;
                if (!fits) break;
                ++counts[s];
                end += pace[s];
            }
            arrival = std::max(arrival, end) + stages_[s].costs.input_gradient + transfers_[s];
        }
        for (size_t s = 1; s < counts.size(); ++s) counts[s] = std::min(counts[s], std::max(counts[s - 1] - 1, 1));
        return counts;
    }

    void run_round() {
        const std::vector<bool> takes = choose_forwards();
        for (size_t s = 0; s < stages_.size(); ++s) {
            if (takes[s]) add_forward(s);
        }
        const bool moved = run_input_gradients();
        check(moved || std::find(takes.begin(), takes.end(), true) != takes.end(), "a greedy round gets on");
    }

    /// The next I of every stage that has one; whether any has.
    bool run_input_gradients() {
        bool moved = false;
        for (size_t s = stages_.size(); s-- > 0;) {
            if (!has_input_gradient(s)) continue;
            add_input_gradient(s);
            moved = true;
        }
        return moved;
    }

    /// Which stages issue an F in this round.
    std::vector<bool> choose_forwards() const {
        std::vector<bool> takes(stages_.size(), false);
        Ticks arrival = 0;  // of this round's gradient, were it to go up at once
        for (size_t s = stages_.size(); s-- > 0;) {
            const GreedyStage& stage = stages_[s];
            const bool fits =
                stage.forwards() < num_microbatches_ && stage.forwards() - stage.input_gradients() < most_in_flight_;
            takes[s] = fits && next_takes(takes, s) && !goes_straight_to_gradient(s, arrival);
            const Ticks ready = stage.clock + (takes[s] ? stage.costs.forward : 0);
            arrival = std::max(arrival, ready) + stage.costs.input_gradient + transfers_[s];
        }
        for (size_t s = 1; s < stages_.size(); ++s) {
            const int available = stages_[s - 1].forwards() + (takes[s - 1] ? 1 : 0);
            if (stages_[s].forwards() >= available) takes[s] = false;
        }
        return takes;
    }

    bool next_takes(const std::vector<bool>& takes, size_t s) const {
        return s + 1 == stages_.size() || takes[s + 1] || stages_[s + 1].forwards() == num_microbatches_;
    }

    bool goes_straight_to_gradient(size_t s, Ticks arrival) const {
        if (!flags_.prefer_input_gradient || s + 1 == stages_.size()) return false;
        const GreedyStage& stage = stages_[s];
        const Ticks wait = std::max(arrival - stage.clock, Ticks{0});
        return stage.forwards() >= stages_[s + 1].forwards() + 2 && stage.bubble + wait <= worst_bubble_;
    }

    bool has_input_gradient(size_t s) const {
        const int next = stages_[s].input_gradients();
        return next < stages_[s].forwards() && (s + 1 == stages_.size() || next < stages_[s + 1].input_gradients());
    }

    void add_forward(size_t s) {
        GreedyStage& stage = stages_[s];
        const Ticks ready = value_arrival(s);
        while (stage.held(activation_) + activation_.whole > limit_) add_weight_gradient(s);
        fill_wait(s, ready);
        if (stage.forwards() > 0) add_bubble(stage, ready);
        stage.forward_ends.push_back(append(s, ActionKind::F, stage.forwards(), ready));
    }

    void add_input_gradient(size_t s) {
        GreedyStage& stage = stages_[s];
        const Ticks ready = gradient_arrival(s);
        fill_wait(s, ready);
        add_bubble(stage, ready);
        stage.gradient_ends.push_back(append(s, ActionKind::I, stage.input_gradients(), ready));
    }

    void add_weight_gradient(size_t s) {
        check(stages_[s].has_pending(), "a W comes after its I");
        append(s, ActionKind::W, stages_[s].weight_gradients++, 0);
    }

    /// W while the stage waits for `ready`.
    void fill_wait(size_t s, Ticks ready) {
        GreedyStage& stage = stages_[s];
        while (stage.has_pending() && stage.clock + stage.costs.weight_gradient <= ready && stage.clock < ready) {
            add_weight_gradient(s);
        }
        const Ticks gap = ready - stage.clock;
        if (gap <= 0 || !stage.has_pending()) return;
        if (flags_.fill_always || stage.bubble + gap > worst_bubble_) add_weight_gradient(s);
    }

    /// Appends an action that may start at `ready`; gives its end.
    Ticks append(size_t s, ActionKind kind, int microbatch, Ticks ready) {
        GreedyStage& stage = stages_[s];
        stage.list.push_back({kind, static_cast<int>(s), microbatch});
        stage.clock = std::max(stage.clock, ready) + stage.costs.of(kind);
        return stage.clock;
    }

    /// The wait for what is there at `ready`.
    void add_bubble(GreedyStage& stage, Ticks ready) {
        stage.bubble += std::max(ready - stage.clock, Ticks{0});
        worst_bubble_ = std::max(worst_bubble_, stage.bubble);
    }

    GreedyFlags flags_;
    int num_microbatches_;
    int most_in_flight_;  ///< between F and I
    int64_t limit_;       ///< of what is held, in the unit of activation_
    ActivationSize activation_;
    std::vector<Ticks> transfers_;  ///< by stage, from the one below and to it
    std::vector<GreedyStage> stages_;
    Ticks worst_bubble_ = 0;  ///< of all stages so far
};

/// Holding all microbatches is the most that any limit can mean.
double checked_limit(const ScheduleRequest& request) {
    const double limit = request.memory_limit.value_or(request.size.num_ranks);
    if (limit >= 1) return std::min(limit, static_cast<double>(request.size.num_microbatches));
    std::ostringstream got;
    got << limit;
    throw Error(ErrorKind::Plan, "ZERO_BUBBLE_GREEDY holds at least one microbatch on each rank (got memory_limit = " +
                                     got.str() + ", expected at least 1); try memory_limit = 1");
}

}  // namespace

Schedule make_zero_bubble_greedy(const ScheduleRequest& request) {
    const ScheduleSize& size = request.size;
    check_one_stage_per_rank(size, "ZERO_BUBBLE_GREEDY", "INTERLEAVED_ZERO_BUBBLE");
    const double limit = checked_limit(request);
    Schedule best{"ZERO_BUBBLE_GREEDY", size.num_ranks, size.num_microbatches, place_stages(Placement::Loop, size), {}};
    std::pair<Ticks, Ticks> best_cost;
    const auto keep_better = [&](const GreedyPass& pass) {
        const std::pair<Ticks, Ticks> cost{pass.span(), pass.makespan()};
        if (!best.actions.empty() && best_cost <= cost) return;
        best_cost = cost;
        best.actions = pass.lists();
    };
    for (int flags = 0; flags < 8; ++flags) {
        GreedyPass pass(request, limit, {(flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0});
        pass.run();
        keep_better(pass);
    }
    GreedyPass by_time(request, limit, {});
    by_time.run_by_time();
    keep_better(by_time);
    return best;
}

}  // namespace vpp
