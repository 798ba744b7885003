#include "schedule/v_list_scheduler.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>

#include "base/error.hpp"

namespace vpp {

namespace {

constexpr Ticks kNever = std::numeric_limits<Ticks>::max();

/// What a rank can do besides W, in the order of the hops of a microbatch.
enum Kind : size_t { kForwardDown, kForwardUp, kGradientUp, kGradientDown };
constexpr size_t kNumForwards = 2, kNumKinds = 4;

bool is_forward(size_t kind) {
    return kind < kNumForwards;
}

int hop_of(size_t kind, int num_ranks, int rank) {
    const int P = num_ranks;
    const std::array<int, kNumKinds> hops{rank, 2 * P - 1 - rank, 2 * P + rank, 4 * P - 1 - rank};
    return hops.at(kind);
}

/// ceil(lifespan / period) of a leg of a rank, W included.
int kept_by(const VBlock& block, int num_ranks, int rank, size_t forward, size_t gradient) {
    if (block.period == 0) return 1;
    const auto start = [&](size_t kind) { return block.starts[static_cast<size_t>(hop_of(kind, num_ranks, rank))]; };
    return static_cast<int>((start(gradient) - start(forward) + 2 + block.period - 1) / block.period);
}

struct RankState {
    Ticks free_at = 0;
    std::optional<Ticks> began;
    std::array<int, kNumKinds> next{};        ///< microbatch, by kind
    std::deque<std::pair<int, int>> weights;  ///< pending W: stage, microbatch
    int held = 0, held_down = 0;              ///< stage activations
    int most_down = 1;
    bool last_was_forward = false;
    bool touched = false;
};

class ListScheduler {
  public:
    ListScheduler(const ScheduleRequest& request, int most, const VBlock& block, const VRules& rules)
        : P_(request.size.num_ranks),
          M_(request.size.num_microbatches),
          most_(most),
          block_(block),
          rules_(rules),
          transfers_(transfers_of_hops(request.costs, P_)),
          ranks_(static_cast<size_t>(P_)),
          arrivals_(static_cast<size_t>(4 * P_) * static_cast<size_t>(M_), kNever) {
        for (int stage = 0; stage < 2 * P_; ++stage) costs_.push_back(request.costs.of_stage(stage));
        std::fill(arrivals_.begin(), arrivals_.begin() + M_, 0);
        const bool in_order = rules.forwards_in_order || rules.all_in_order;
        run_.actions.resize(ranks_.size());
        for (int rank = 0; rank < P_; ++rank) {
            ranks_[static_cast<size_t>(rank)].most_down =
                in_order ? most_ : std::max(1, most_ - kept_by(block_, P_, rank, kForwardUp, kGradientUp));
            run_.actions[static_cast<size_t>(rank)].reserve(static_cast<size_t>(6 * M_));
            wake(0, rank);
        }
    }

    VRun run() {
        std::vector<int> woken;
        while (!wakes_.empty()) {
            const Ticks now = wakes_.top().first;
            woken.clear();
            while (!wakes_.empty() && wakes_.top().first == now) {
                const int rank = wakes_.top().second;
                wakes_.pop();
                if (!std::exchange(ranks_[static_cast<size_t>(rank)].touched, true)) woken.push_back(rank);
            }
            for (int rank : woken) {
                ranks_[static_cast<size_t>(rank)].touched = false;
                if (ranks_[static_cast<size_t>(rank)].free_at <= now) decide(now, rank);
            }
        }
        finish();
        return std::move(run_);
    }

  private:
    void wake(Ticks time, int rank) { wakes_.emplace(time, rank); }

    Ticks& arrival(int hop, int microbatch) {
        return arrivals_[static_cast<size_t>(hop) * static_cast<size_t>(M_) + static_cast<size_t>(microbatch)];
    }
    /// When the next action of a kind can start, as far as is known.
    Ticks arrival_of(size_t kind, int rank, const RankState& state) {
        return state.next[kind] < M_ ? arrival(hop_of(kind, P_, rank), state.next[kind]) : kNever;
    }
    Ticks wish(size_t kind, int rank, const RankState& state) const {
        if (state.next[kind] >= M_) return kNever;
        return block_.starts[static_cast<size_t>(hop_of(kind, P_, rank))] + block_.period * state.next[kind];
    }

    /// Whether the rules and the memory let a kind start, arrivals aside.
    bool may_start(size_t kind, int rank, const RankState& state) const {
        if (state.next[kind] >= M_) return false;
        if (is_forward(kind) && state.held >= most_) return false;
        if (kind == kForwardDown && state.held_down >= state.most_down) return false;
        const bool in_order = rules_.all_in_order || (rules_.forwards_in_order && is_forward(kind));
        const size_t num_before = !in_order ? 0 : rules_.all_in_order ? kNumKinds : kNumForwards;
        for (size_t other = 0; other < num_before; ++other) {
            if (wish(other, rank, state) < wish(kind, rank, state)) return false;
        }
        return true;
    }

    /// The one of two legs that can start now and that the block wants first.
    std::optional<size_t> ready_of(size_t one, size_t other, Ticks now, int rank, const RankState& state) {
        std::optional<size_t> found;
        for (size_t kind : {one, other}) {
            if (arrival_of(kind, rank, state) > now || !may_start(kind, rank, state)) continue;
            if (!found || wish(kind, rank, state) < wish(*found, rank, state)) found = kind;
        }
        return found;
    }

    bool forward_first(size_t forward, size_t gradient, int rank, const RankState& state) const {
        switch (rules_.first) {
            case VRules::First::Block:
                return wish(forward, rank, state) < wish(gradient, rank, state);
            case VRules::First::InputGradient:
                return false;
            case VRules::First::Forward:
                return true;
            default:
                return !state.last_was_forward;
        }
    }

    void decide(Ticks now, int rank) {
        RankState& state = ranks_[static_cast<size_t>(rank)];
        const std::optional<size_t> forward = ready_of(kForwardDown, kForwardUp, now, rank, state);
        const std::optional<size_t> gradient = ready_of(kGradientUp, kGradientDown, now, rank, state);
        const bool takes_forward = forward && (!gradient || forward_first(*forward, *gradient, rank, state));
        const bool weight_instead = takes_forward && rules_.weights_before_forwards && !state.weights.empty();
        if (takes_forward && !weight_instead) return start(*forward, now, rank, state);
        if (gradient && !takes_forward) return start(*gradient, now, rank, state);
        if (!state.weights.empty()) start_weight(!forward, now, rank, state);
    }

    void start(size_t kind, Ticks now, int rank, RankState& state) {
        const int hop = hop_of(kind, P_, rank), microbatch = state.next[kind]++;
        const int stage = is_forward(kind) ? hop : 4 * P_ - 1 - hop;
        const StageCosts& costs = costs_[static_cast<size_t>(stage)];
        if (is_forward(kind)) {
            ++state.held;
            if (kind == kForwardDown) ++state.held_down;
        } else {
            state.weights.emplace_back(stage, microbatch);
        }
        state.last_was_forward = is_forward(kind);
        const ActionKind action = is_forward(kind) ? ActionKind::F : ActionKind::I;
        occupy({action, stage, microbatch}, costs.of(action), now, rank, state);
        if (hop + 1 == 4 * P_) return;
        const int leg = (hop + 1) / P_, along = (hop + 1) % P_;
        const int to = leg % 2 == 0 ? along : P_ - 1 - along;
        arrival(hop + 1, microbatch) = state.free_at + transfers_[static_cast<size_t>(hop)];
        wake(arrival(hop + 1, microbatch), to);
    }

    /// `waits`: nothing else can start now.
    void start_weight(bool waits, Ticks now, int rank, RankState& state) {
        const auto [stage, microbatch] = state.weights.front();
        const Ticks cost = costs_[static_cast<size_t>(stage)].weight_gradient;
        if (waits && next_arrival(rank, state) < now + cost) {
            if (rules_.weights_wait) return;  // the arrival wakes the rank
            run_.weights_delay = true;
        }
        state.weights.pop_front();
        --state.held;
        if (stage < P_) --state.held_down;
        occupy({ActionKind::W, stage, microbatch}, cost, now, rank, state);
    }

    /// When the first thing arrives that could start then.
    Ticks next_arrival(int rank, const RankState& state) {
        Ticks first = kNever;
        for (size_t kind = 0; kind < kNumKinds; ++kind) {
            if (may_start(kind, rank, state)) first = std::min(first, arrival_of(kind, rank, state));
        }
        return first;
    }

    void occupy(const Action& action, Ticks cost, Ticks now, int rank, RankState& state) {
        run_.actions[static_cast<size_t>(rank)].push_back(action);
        if (!state.began) state.began = now;
        state.free_at = now + cost;
        wake(state.free_at, rank);
    }

    void finish() {
        run_.ended = true;
        for (size_t rank = 0; rank < ranks_.size(); ++rank) {
            const RankState& state = ranks_[rank];
            run_.ended = run_.ended && run_.actions[rank].size() == static_cast<size_t>(6 * M_);
            run_.makespan = std::max(run_.makespan, state.free_at);
            run_.span = std::max(run_.span, state.free_at - state.began.value_or(0));
        }
    }

    using Wake = std::pair<Ticks, int>;

    int P_, M_, most_;
    const VBlock& block_;
    const VRules& rules_;
    std::vector<Ticks> transfers_;
    std::vector<StageCosts> costs_;
    std::vector<RankState> ranks_;
    std::vector<Ticks> arrivals_;  ///< by hop and microbatch
    std::priority_queue<Wake, std::vector<Wake>, std::greater<>> wakes_;
    VRun run_;
};

}  // namespace

bool VRun::operator<(const VRun& other) const {
    return std::tie(makespan, span) < std::tie(other.makespan, other.span);
}

std::vector<Ticks> transfers_of_hops(const ScheduleCosts& costs, int num_ranks) {
    std::vector<Ticks> transfers(static_cast<size_t>(4 * num_ranks), 0);
    for (int hop = 0; hop + 1 < 4 * num_ranks; ++hop) {
        const bool turns = (hop + 1) % num_ranks == 0;
        const int lower_stage = hop < 2 * num_ranks ? hop : 4 * num_ranks - 2 - hop;
        if (!turns) transfers[static_cast<size_t>(hop)] = costs.of_transfer(lower_stage);
    }
    return transfers;
}

VRun schedule_v_list(const ScheduleRequest& request, int most, const VBlock& block, const VRules& rules) {
    const bool has_all_hops = block.starts.size() == static_cast<size_t>(4 * request.size.num_ranks);
    check(request.size.stages_per_rank == 2 && most >= 2 && has_all_hops, "a v list has two stages a rank and a block");
    VRun run = ListScheduler(request, most, block, rules).run();
    const bool wants_order = rules.forwards_in_order || rules.all_in_order;
    check(run.ended || wants_order, "a v list without an order ends");
    return run;
}

VRun schedule_v_best(const ScheduleRequest& request, int most, const VBlock& block, const std::vector<VRules>& rules) {
    VRun best;
    const auto consider = [&](VRun run) {
        if (run.ended && (!best.ended || run < best)) best = std::move(run);
    };
    for (const VRules& one : rules) {
        VRun run = schedule_v_list(request, most, block, one);
        const bool matters = run.weights_delay && !one.weights_wait;
        consider(std::move(run));
        if (!matters) continue;
        VRules waiting = one;
        waiting.weights_wait = true;
        consider(schedule_v_list(request, most, block, waiting));
    }
    return best;
}

const std::vector<VRules>& building_block_rules() {
    static const std::vector<VRules> kRules{
        {},
        {.first = VRules::First::Forward},
        {.forwards_in_order = true},
        {.all_in_order = true},
    };
    return kRules;
}

int block_peak(const VBlock& block, int num_ranks) {
    int peak = 0;
    for (int rank = 0; rank < num_ranks; ++rank) {
        peak = std::max(peak, kept_by(block, num_ranks, rank, kForwardDown, kGradientDown) +
                                  kept_by(block, num_ranks, rank, kForwardUp, kGradientUp));
    }
    return peak;
}

}  // namespace vpp
