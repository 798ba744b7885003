#include "schedule/steady_state.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "schedule/edges.hpp"
#include "schedule/lowering.hpp"
#include "schedule/simulator.hpp"

namespace vpp {

namespace {

constexpr size_t kForward = 0, kGradient = 1, kWeight = 2;

size_t slot_of(ActionKind kind) {
    return kind == ActionKind::F ? kForward : gives_input_gradient(kind) ? kGradient : kWeight;
}

bool mixes_backwards(const Schedule& schedule) {
    std::vector<bool> has_whole(schedule.rank_of_stage.size(), false), has_split = has_whole;
    for (const std::vector<Action>& list : schedule.actions) {
        for (const Action& action : list) {
            const auto stage = static_cast<size_t>(action.stage);
            if (action.kind == ActionKind::B) has_whole[stage] = true;
            if (action.kind == ActionKind::I) has_split[stage] = true;
        }
    }
    for (size_t stage = 0; stage < has_whole.size(); ++stage) {
        if (has_whole[stage] && has_split[stage]) return true;
    }
    return false;
}

/// What has begun before a moment; as all that it waits for has ended by then, it can be done without the rest.
std::vector<std::array<int, 3>> done_before(const Schedule& lowered, const Simulation& simulation, Ticks moment) {
    std::vector<std::array<int, 3>> done(lowered.rank_of_stage.size(), {0, 0, 0});
    for (size_t rank = 0; rank < lowered.actions.size(); ++rank) {
        for (size_t k = 0; k < lowered.actions[rank].size(); ++k) {
            const Action& action = lowered.actions[rank][k];
            if (!is_computing(action.kind) || simulation.times[rank][k].start >= moment) continue;
            std::array<int, 3>& stage = done[static_cast<size_t>(action.stage)];
            ++stage[slot_of(action.kind)];
            if (action.kind == ActionKind::B) ++stage[kWeight];
        }
    }
    return done;
}

/// When stage 0 begins each microbatch.
std::vector<Ticks> beginnings(const Schedule& lowered, const Simulation& simulation) {
    std::vector<Ticks> moments;
    const auto rank = static_cast<size_t>(lowered.rank_of_stage.front());
    for (size_t k = 0; k < lowered.actions[rank].size(); ++k) {
        const Action& action = lowered.actions[rank][k];
        if (action.kind == ActionKind::F && action.stage == 0) moments.push_back(simulation.times[rank][k].start);
    }
    return moments;
}

}  // namespace

std::vector<SteadyBlock> find_steady_blocks(const Schedule& shorter, int more, const ScheduleCosts& costs) {
    std::vector<SteadyBlock> blocks;
    if (mixes_backwards(shorter)) return blocks;
    const Schedule lowered = lower(shorter, chain_edges(shorter.num_stages()));
    const Simulation simulation = simulate(lowered, costs);
    for (Ticks moment : beginnings(lowered, simulation)) {
        const std::vector<std::array<int, 3>> done = done_before(lowered, simulation, moment);
        int most_done = 0;
        for (const std::array<int, 3>& stage : done) most_done = std::max(most_done, stage[kForward]);
        for (int period = 1; period <= shorter.num_microbatches / 2; ++period) {
            const bool fits = more % period == 0 && most_done + period <= shorter.num_microbatches;
            if (fits) blocks.push_back({period, done});
        }
    }
    return blocks;
}

Schedule lengthen(const Schedule& shorter, const SteadyBlock& block, int times) {
    Schedule longer = shorter;
    longer.num_microbatches += times * block.period;
    for (size_t rank = 0; rank < shorter.actions.size(); ++rank) {
        std::vector<Action> before, inside, behind;
        for (const Action& action : shorter.actions[rank]) {
            const int done = block.done.at(static_cast<size_t>(action.stage))[slot_of(action.kind)];
            const bool is_before = action.microbatch < done, is_behind = action.microbatch >= done + block.period;
            (is_before ? before : is_behind ? behind : inside).push_back(action);
        }
        std::vector<Action>& list = longer.actions[rank];
        const auto append = [&](const std::vector<Action>& part, int shift) {
            for (Action action : part) {
                action.microbatch += shift;
                list.push_back(action);
            }
        };
        list.clear();
        append(before, 0);
        for (int turn = 0; turn <= times; ++turn) append(inside, turn * block.period);
        append(behind, times * block.period);
    }
    return longer;
}

}  // namespace vpp
