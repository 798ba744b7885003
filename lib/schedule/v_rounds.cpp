#include "schedule/v_rounds.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <limits>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "schedule/v_shape.hpp"

namespace vpp {

namespace {

constexpr Ticks kUnknown = std::numeric_limits<Ticks>::max();

enum RoundKind : size_t { kFa, kFb, kIb, kIa };

struct RoundState {
    Ticks now = 0;
    Ticks waited = 0;  ///< since the first F
    Ticks began = -1;
    int held = 0;  ///< stage activations
    std::array<int, 4> count{};
    std::deque<std::pair<int, int>> weights;  ///< pending: stage, microbatch

    int num_forwards() const { return count[kFa] + count[kFb]; }
};

/// Where a W may start in a wait that is too short for it: before Ia always, before F and Ib by flags.
struct Flags {
    bool before_forward = false;
    bool before_gradient_up = false;
};

/// One pass.
class Rounds {
  public:
    Rounds(const ScheduleRequest& request, int most, Flags flags, std::vector<Ticks> may_wait)
        : P_(request.size.num_ranks),
          M_(request.size.num_microbatches),
          most_(most),
          flags_(flags),
          may_wait_(std::move(may_wait)),
          longest_allowed_(may_wait_.empty() ? 0 : *std::max_element(may_wait_.begin(), may_wait_.end())),
          transfers_(transfers_of_hops(request.costs, P_)),
          ranks_(static_cast<size_t>(P_)),
          ends_(static_cast<size_t>(4 * P_) * static_cast<size_t>(M_), kUnknown) {
        for (int stage = 0; stage < 2 * P_; ++stage) costs_.push_back(request.costs.of_stage(stage));
        run_.actions.resize(ranks_.size());
    }

    VRun run() {
        warm_up();
        run_.ended = true;
        while (run_.ended && !is_done()) run_.ended = round();
        for (int r = 0; r < P_; ++r) {
            while (!rank(r).weights.empty()) do_weight(r);
            run_.makespan = std::max(run_.makespan, rank(r).now);
            run_.span = std::max(run_.span, rank(r).now - std::max<Ticks>(rank(r).began, 0));
        }
        return std::move(run_);
    }

    std::vector<Ticks> waits() const {
        std::vector<Ticks> waits;
        for (const RoundState& state : ranks_) waits.push_back(state.waited);
        return waits;
    }

  private:
    RoundState& rank(int r) { return ranks_[static_cast<size_t>(r)]; }

    int hop(RoundKind kind, int r) const {
        const std::array<int, 4> hops{r, 2 * P_ - 1 - r, 2 * P_ + r, 4 * P_ - 1 - r};
        return hops.at(kind);
    }
    Ticks& end(int hop, int microbatch) {
        return ends_[static_cast<size_t>(hop) * static_cast<size_t>(M_) + static_cast<size_t>(microbatch)];
    }

    /// When the next action of a kind has its input; kUnknown when what gives it is not placed yet or none is left.
    Ticks input(RoundKind kind, int r) {
        const int microbatch = rank(r).count.at(kind), at = hop(kind, r);
        if (microbatch >= M_) return kUnknown;
        if (at == 0) return 0;
        const Ticks given = end(at - 1, microbatch);
        return given == kUnknown ? given : given + transfers_[static_cast<size_t>(at - 1)];
    }

    bool can_forward(RoundKind kind, int r) {
        const RoundState& state = rank(r);
        const bool has_room = state.held - static_cast<int>(state.weights.size()) < most_;  // after all pending W
        return has_room && input(kind, r) != kUnknown;
    }

    void do_weight(int r) {
        RoundState& state = rank(r);
        const auto [stage, microbatch] = state.weights.front();
        state.weights.pop_front();
        state.now += costs_[static_cast<size_t>(stage)].weight_gradient;
        --state.held;
        run_.actions[static_cast<size_t>(r)].push_back({ActionKind::W, stage, microbatch});
    }

    /// How long a rank may have waited without being the one that waits longest.
    Ticks allowed(int r) const {
        if (may_wait_.empty()) return longest_wait_;
        return std::max(longest_wait_, longest_allowed_ - may_wait_[static_cast<size_t>(r)]);
    }

    void fill_wait(Ticks ready, bool also_short, int r) {
        RoundState& state = rank(r);
        const auto fits = [&] {
            const auto stage = static_cast<size_t>(state.weights.front().first);
            return state.now + costs_[stage].weight_gradient <= ready;
        };
        while (!state.weights.empty() && fits()) do_weight(r);
        if (state.weights.empty() || ready <= state.now) return;
        if (also_short && state.waited + ready - state.now > allowed(r)) do_weight(r);
    }

    void place(RoundKind kind, int r) {
        RoundState& state = rank(r);
        const bool forward = kind == kFa || kind == kFb;
        const Ticks ready = input(kind, r);
        if (forward) {
            while (state.held >= most_) do_weight(r);
        }
        fill_wait(ready, kind == kIa || (forward ? flags_.before_forward : flags_.before_gradient_up), r);
        const Ticks start = std::max(state.now, ready);
        if (state.began < 0) {
            state.began = start;
        } else {
            state.waited += start - state.now;
            longest_wait_ = std::max(longest_wait_, state.waited);
        }
        const int at = hop(kind, r), microbatch = state.count.at(kind)++;
        const int stage = forward ? at : 4 * P_ - 1 - at;
        const StageCosts& costs = costs_[static_cast<size_t>(stage)];
        state.now = start + (forward ? costs.forward : costs.input_gradient);
        end(at, microbatch) = state.now;
        run_.actions[static_cast<size_t>(r)].push_back({forward ? ActionKind::F : ActionKind::I, stage, microbatch});
        if (forward) {
            ++state.held;
        } else {
            state.weights.emplace_back(stage, microbatch);
        }
    }

    void warm_up() {
        for (int r = 0; r < P_; ++r) place(kFa, r);
        for (int r = P_ - 1; r >= 0; --r) {
            take_more_down(r);
            place(kFb, r);
        }
        fill_down_the_ranks();
    }

    /// Lets each rank catch up with the one before it: in F, and by one Fb more. All ranks below take part, one leg at
    /// a time, from the last rank on; what memory does not allow is left to the rounds.
    void fill_down_the_ranks() {
        RoundKind kind = kFa;
        int num_idle = 0;  // turns in a row without a change
        for (int r = 1; r < P_; ++r) {
            const RoundState &before = rank(r - 1), &state = rank(r);
            while (num_idle < 2 && (state.num_forwards() < before.num_forwards() ||
                                    (state.count[kFb] <= before.count[kFb] && before.count[kFb] < M_))) {
                ++num_idle;
                for (int below = P_ - 1; below >= r; --below) {
                    if (!can_forward(kind, below)) continue;
                    place(kind, below);
                    num_idle = 0;
                }
                kind = kind == kFa ? kFb : kFa;
            }
            num_idle = 0;
        }
    }

    /// More Fa on rank r, and with them on the ranks before it, until the first microbatch comes up again.
    void take_more_down(int r) {
        const Ticks comes = input(kFb, r);
        const auto fits = [&] {
            const RoundState& state = rank(r);
            const bool in_time = state.now + costs_[static_cast<size_t>(r)].forward <= comes;
            return in_time && state.held + 2 + 2 * r <= most_ && state.count[kFa] < M_;
        };
        const auto has_place = [&](int upstream) {
            return rank(upstream).count[kFa] > rank(r).count[kFa] || can_forward(kFa, upstream);
        };
        while (fits()) {
            for (int upstream = 0; upstream <= r; ++upstream) {
                if (!has_place(upstream)) return;
                if (rank(upstream).count[kFa] == rank(r).count[kFa]) place(kFa, upstream);
            }
        }
    }

    bool place_forward(int r) {
        const RoundState& state = rank(r);
        const bool up_lags = state.count[kFb] < state.count[kFa];
        if (up_lags && can_forward(kFb, r)) return place(kFb, r), true;
        if (can_forward(kFa, r)) return place(kFa, r), true;
        return false;
    }

    /// One I and one F on every rank; false when nothing could be placed.
    bool round() {
        bool moved = false;
        std::vector<bool> takes_down(ranks_.size());
        for (int r = 0; r < P_; ++r) {  // by what is there before the round, so that Ia climbs a rank a round
            const RoundState& state = rank(r);
            const bool ahead = state.count[kIb] > state.count[kIa];
            takes_down[static_cast<size_t>(r)] = ahead && (input(kIa, r) != kUnknown || state.count[kIb] == M_);
        }
        for (int r = P_ - 1; r >= 0; --r) {
            if (!takes_down[static_cast<size_t>(r)] || input(kIa, r) == kUnknown) continue;
            place(kIa, r);
            moved = true;
        }
        for (int r = 0; r < P_; ++r) {
            if (takes_down[static_cast<size_t>(r)] || input(kIb, r) == kUnknown) continue;
            place(kIb, r);
            moved = true;
        }
        for (int r = 0; r < P_; ++r) {
            if (place_forward(r)) moved = true;
        }
        return moved;
    }

    bool is_done() const {
        return std::all_of(ranks_.begin(), ranks_.end(),
                           [&](const RoundState& state) { return state.count[kFb] == M_ && state.count[kIa] == M_; });
    }

    int P_, M_, most_;
    Flags flags_;
    std::vector<Ticks> may_wait_;
    Ticks longest_allowed_;   ///< of may_wait_
    Ticks longest_wait_ = 0;  ///< of all ranks so far
    std::vector<Ticks> transfers_;
    std::vector<StageCosts> costs_;
    std::vector<RoundState> ranks_;
    std::vector<Ticks> ends_;  ///< by hop and microbatch
    VRun run_;
};

bool is_narrower(const VRun& one, const VRun& other) {
    if (!one.ended || !other.ended) return one.ended;
    return one.span != other.span ? one.span < other.span : one.makespan < other.makespan;
}

}  // namespace

VRun schedule_v_rounds(const ScheduleRequest& request, int most) {
    check(request.size.stages_per_rank == 2 && most >= 2, "rounds have two stages a rank and room for a microbatch");
    VRun best;
    for (const Flags& flags : {Flags{true, true}, {true, false}, {false, true}, {false, false}}) {
        std::vector<Ticks> may_wait;
        std::optional<Ticks> longest;
        while (true) {
            Rounds rounds(request, most, flags, may_wait);
            VRun run = rounds.run();
            may_wait = rounds.waits();
            const Ticks waited = *std::max_element(may_wait.begin(), may_wait.end());
            const bool shrinks = run.ended && (!longest || waited < *longest);
            if (is_narrower(run, best)) best = std::move(run);
            if (!shrinks) break;
            longest = waited;
        }
    }
    return best;
}

}  // namespace vpp
