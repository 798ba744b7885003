#include "schedule/v_search.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "schedule/edges.hpp"
#include "schedule/lowering.hpp"
#include "schedule/simulator.hpp"
#include "schedule/v_rounds.hpp"
#include "schedule/zero_bubble_v.hpp"

namespace vpp {

namespace {

constexpr int kPeriod = 6;
constexpr int kMostTurns = 16;  // values of K

using Offsets = std::vector<Ticks>;

/// For every rank how many slots after rank 0 the leg down comes to it.
std::vector<Offsets> down_offsets(int num_ranks) {
    const int num_hops = num_ranks - 1;
    std::vector<Offsets> all;
    const auto add = [&](int first, int num_first, int rest) {
        Offsets& offsets = all.emplace_back(1, 0);
        for (int hop = 0; hop < num_hops; ++hop) offsets.push_back(offsets.back() + (hop < num_first ? first : rest));
    };
    for (int first = 5; first >= (num_hops == 0 ? 5 : 1); --first) {
        add(first, num_hops, first);
        const int num_turns = std::min(num_hops - 1, kMostTurns);
        for (int rest = first - 1; rest >= 1; --rest) {
            for (int turn = 1; turn <= num_turns; ++turn) add(first, turn * num_hops / (num_turns + 1), rest);
        }
    }
    return all;
}

/// The first slot from `earliest` on that is `place` modulo the period.
Ticks slot_from(Ticks earliest, int place) {
    return earliest + ((place - earliest) % kPeriod + kPeriod) % kPeriod;
}

/// `places`: of Fb, Ib and Ia on rank 0.
VBlock make_block(const Offsets& down, const std::array<int, 3>& places) {
    const auto P = static_cast<Ticks>(down.size());
    const Ticks forward_up = slot_from(down.back() + P, places[0]);
    const Ticks gradient_up = slot_from(forward_up + 1, places[1]);
    const Ticks gradient_down = slot_from(gradient_up + down.back() + P, places[2]);
    VBlock block{down, kPeriod};
    for (Ticks rank = P - 1; rank >= 0; --rank) block.starts.push_back(forward_up - rank);
    for (Ticks offset : down) block.starts.push_back(gradient_up + offset);
    for (Ticks rank = P - 1; rank >= 0; --rank) block.starts.push_back(gradient_down - rank);
    return block;
}

bool repeats_without_collision(const VBlock& block, int num_ranks) {
    const auto P = static_cast<size_t>(num_ranks);
    for (size_t rank = 0; rank < P; ++rank) {
        unsigned taken = 0;
        for (size_t hop : {rank, 2 * P - 1 - rank, 2 * P + rank, 4 * P - 1 - rank}) {
            const unsigned place = 1U << (block.starts[hop] % kPeriod);
            if (taken & place) return false;
            taken |= place;
        }
    }
    return true;
}

/// No block: a rank takes the leg up before the leg down for F, and for I what `down_first` says.
VBlock no_block(int num_ranks, bool down_first) {
    VBlock block{std::vector<Ticks>(static_cast<size_t>(4 * num_ranks), 0), 0};
    const std::array<Ticks, 4> wishes{1, 0, down_first ? 1 : 0, down_first ? 0 : 1};
    for (size_t hop = 0; hop < block.starts.size(); ++hop) {
        block.starts[hop] = wishes.at(hop / static_cast<size_t>(num_ranks));
    }
    return block;
}

class VOrderSearch {
  public:
    VOrderSearch(const ScheduleRequest& request, const VSearch& search) : request_(request), search_(search) {
        const int P = request.size.num_ranks, M = request.size.num_microbatches;
        Ticks arrival = 0;
        for (int rank = 0; rank < P; ++rank) {
            const StageCosts down = request.costs.of_stage(rank), up = request.costs.of_stage(2 * P - 1 - rank);
            const Ticks busy = M * (down.forward + down.input_gradient + down.weight_gradient + up.forward +
                                    up.input_gradient + up.weight_gradient);
            least_span_ = std::max(least_span_, busy);
            least_makespan_ = std::max(least_makespan_, arrival + busy);
            arrival += down.forward + request.costs.of_transfer(rank);
        }
    }

    VRun run() {
        const int P = request_.size.num_ranks;
        consider(schedule_v_rounds(request_, search_.most));
        if (search_.most >= 2 * P) consider(fixed_form());
        std::vector<VBlock> blocks = hop_blocks(P);
        const auto distance = [&](const VBlock& block) { return std::abs(block_peak(block, P) - search_.most); };
        std::vector<std::pair<int, size_t>> nearest;
        for (size_t i = 0; i < blocks.size(); ++i) nearest.emplace_back(distance(blocks[i]), i);
        std::sort(nearest.begin(), nearest.end());
        try_block(blocks[nearest.front().second]);
        try_without_block();
        for (size_t i = 1; i < nearest.size(); ++i) try_block(blocks[nearest[i].second]);
        return std::move(best_);
    }

  private:
    void consider(VRun run) {
        num_actions_ += int64_t{6} * request_.size.num_ranks * request_.size.num_microbatches;
        if (run.ended && (!best_.ended || is_better(run))) best_ = std::move(run);
    }
    bool is_better(const VRun& run) const {
        if (search_.goal == VGoal::Makespan || run.span == best_.span) return run < best_;
        return run.span < best_.span;
    }

    VRun fixed_form() const {
        Schedule schedule = make_zero_bubble_v_fixed(request_.size);
        const Schedule lowered = lower(schedule, chain_edges(schedule.num_stages()));
        const Simulation simulation = simulate(lowered, request_.costs);
        return {std::move(schedule.actions), simulation.makespan, simulation.span, true, false};
    }

    void try_block(const VBlock& block) {
        for (bool weights_first : {false, true}) {
            for (VRules rules : building_block_rules()) {
                rules.weights_before_forwards = weights_first;
                try_rules(block, rules);
            }
        }
    }

    void try_without_block() {
        using First = VRules::First;
        for (bool weights_first : {false, true}) {
            for (bool down_first : {true, false}) {
                for (First first : {First::Forward, First::Alternate, First::InputGradient}) {
                    try_rules(no_block(request_.size.num_ranks, down_first),
                              {.first = first, .weights_before_forwards = weights_first});
                }
            }
        }
    }

    void try_rules(const VBlock& block, VRules rules) {
        const bool at_the_bound = best_.makespan <= least_makespan_ && best_.span <= least_span_;
        if (best_.ended && (at_the_bound || num_actions_ >= search_.most_actions)) return;
        VRun run = schedule_v_list(request_, search_.most, block, rules);
        const bool matters = run.weights_delay;
        consider(std::move(run));
        if (!matters) return;
        rules.weights_wait = true;
        consider(schedule_v_list(request_, search_.most, block, rules));
    }

    const ScheduleRequest& request_;
    const VSearch& search_;
    Ticks least_span_ = 0, least_makespan_ = 0;  ///< no schedule is shorter: a rank waits for the first F, then works
    int64_t num_actions_ = 0;
    VRun best_;
};

}  // namespace

std::vector<VBlock> hop_blocks(int num_ranks) {
    std::vector<VBlock> blocks;
    for (const Offsets& down : down_offsets(num_ranks)) {
        for (int code = 0; code < 5 * 5 * 5; ++code) {
            const std::array<int, 3> places{1 + code / 25, 1 + code / 5 % 5, 1 + code % 5};
            if (places[0] == places[1] || places[1] == places[2] || places[0] == places[2]) continue;
            VBlock block = make_block(down, places);
            if (repeats_without_collision(block, num_ranks)) blocks.push_back(std::move(block));
        }
    }
    return blocks;
}

VRun search_v(const ScheduleRequest& request, const VSearch& search) {
    return VOrderSearch(request, search).run();
}

int v_memory_limit(const ScheduleRequest& request, const char* name) {
    const double limit = request.memory_limit.value_or(request.size.num_ranks);
    if (!(limit >= 1)) {
        std::ostringstream given;
        given << limit;
        throw Error(ErrorKind::Plan, std::string(name) + " cannot keep to memory_limit (got " + given.str() +
                                         ", expected at least 1, since a microbatch is on both stages of a rank); try "
                                         "memory_limit = 1");
    }
    const double all = 2.0 * request.size.num_microbatches + 2.0 * request.size.num_ranks;  // more changes nothing
    return static_cast<int>(std::floor(std::min(2 * limit, all)));
}

}  // namespace vpp
