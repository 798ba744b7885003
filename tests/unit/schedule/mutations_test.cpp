// Every single mutation of a valid lowered schedule is refused by the checker, or it is harmless: then symbolic
// execution finds every tree equal to that of one device.
#include <algorithm>
#include <array>

#include "schedule/generators.hpp"
#include "schedule/symbolic.hpp"
#include "unit/schedule/support.hpp"
#include "unit/schedule/variants.hpp"

namespace vpp {
namespace {

enum class Mutation { Drop, Duplicate, MoveToRank, SwapNeighbours, Microbatch, Stage, Edge, Peer, Kind, Pair };
constexpr size_t kNumMutations = 10;

class Random {
  public:
    explicit Random(uint64_t seed) : key_(mix64(seed)) {}
    int operator()(int bound) { return static_cast<int>((key_ = mix64(key_)) % static_cast<uint64_t>(bound)); }

  private:
    uint64_t key_;
};

/// A valid lowered schedule, its model, and what it is checked for.
struct Valid {
    SymbolicModel model;
    std::vector<ScheduleEdge> edges;
    Schedule lowered;
    CheckOptions options;
    Channels channels = Channels::Tagged;
};

bool passes(const Schedule& lowered, const std::vector<ScheduleEdge>& edges, const CheckOptions& options = {}) {
    try {
        check_schedule(lowered, edges, options);
        return true;
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::Plan) << error.what();
        return false;
    }
}

/// A schedule of that kind at a random size, one in three with split backwards, some with pairs, over a random model,
/// in a random order of messages. False: the kind does not take the size.
bool make_valid(const ScheduleKind& kind, Random& draw, Valid& valid) {
    const int P = 1 + draw(4), v = std::min(kind.fewest_per_rank + draw(2), kind.most_per_rank), M = 1 + draw(9);
    Schedule compute;
    try {
        compute = make_schedule(kind.name, P, v, M);
    } catch (const Error&) {
        return false;
    }
    if (draw(3) == 0) compute = testing::split_backwards(compute, static_cast<size_t>(draw(3)));
    LoweringOptions lowering{.reduce_gradients = draw(2) == 0 && !compute.forward_only};
    lowering.order = std::array{MessageOrder::BeforeConsumer, MessageOrder::Channels, MessageOrder::Global}.at(
        static_cast<size_t>(draw(3)));
    valid.options = {.ordered_channels = lowering.order != MessageOrder::BeforeConsumer,
                     .rendezvous = lowering.order == MessageOrder::Global,
                     .reduces = lowering.reduce_gradients};
    valid.channels = valid.options.ordered_channels ? Channels::Ordered : Channels::Tagged;
    const auto seed = static_cast<uint64_t>(draw(1 << 30));
    // Where W of an owner comes before the other stage's W, tied parameters are refused.
    for (const bool tied : {true, false}) {
        valid.model = make_random_model(P * v, seed, {.tied = tied});
        valid.edges = valid.model.schedule_edges();
        valid.lowered = lower(compute, valid.edges);
        if (passes(lower(compute, valid.edges), valid.edges)) break;
    }
    if (const Schedule pairs = testing::pair_up(compute);
        draw(3) == 0 && passes(lower(pairs, valid.edges), valid.edges)) {
        compute = pairs;
    }
    valid.lowered = lower(compute, valid.edges, lowering);
    return true;
}

/// False: the mutation changes nothing here.
bool mutate(Schedule& schedule, Mutation mutation, Random& draw) {
    const auto rank = static_cast<size_t>(draw(schedule.num_ranks));
    std::vector<Action>& list = schedule.actions[rank];
    if (list.empty()) return false;
    const int index = draw(static_cast<int>(list.size()));
    Action& action = list[static_cast<size_t>(index)];
    const Action before = action;
    const bool transfer = is_transfer(action.kind), reduce = action.kind == ActionKind::ReduceGrad;
    const auto insert = [&](std::vector<Action>& into) {
        into.insert(into.begin() + draw(static_cast<int>(into.size()) + 1), before);
    };
    switch (mutation) {
        case Mutation::Drop:
            list.erase(list.begin() + index);
            return true;
        case Mutation::Duplicate:
            insert(list);
            return true;
        case Mutation::MoveToRank: {
            if (schedule.num_ranks == 1) return false;
            const int other = (static_cast<int>(rank) + 1 + draw(schedule.num_ranks - 1)) % schedule.num_ranks;
            list.erase(list.begin() + index);
            insert(schedule.actions[static_cast<size_t>(other)]);
            return true;
        }
        case Mutation::SwapNeighbours:
            if (index + 1 == static_cast<int>(list.size())) return false;
            std::swap(action, list[static_cast<size_t>(index) + 1]);
            return true;
        case Mutation::Microbatch:
            if (reduce) return false;  // it belongs to none
            action.microbatch = draw(schedule.num_microbatches + 2) - 1;
            break;
        case Mutation::Stage:
            action.stage = draw(schedule.num_stages() + 2) - 1;
            break;
        case Mutation::Edge:
            if (!transfer) return false;
            action.edge = draw(action.edge + 3) - 1;
            break;
        case Mutation::Peer:
            if (!transfer) return false;
            action.peer = draw(schedule.num_ranks + 2) - 1;
            break;
        case Mutation::Kind:
            action.kind = static_cast<ActionKind>(draw(9));
            break;
        case Mutation::Pair:
            action.paired = !action.paired;
            break;
    }
    return action != before;
}

/// Sends whose order among themselves or towards computing does not matter, pairs that may run together.
bool may_be_harmless(Mutation mutation) {
    return mutation == Mutation::SwapNeighbours || mutation == Mutation::Pair;
}

TEST(Mutations, EveryOneIsRefusedOrHarmless) {
    Random draw(2024);
    std::array<int, kNumMutations> num_refused{}, num_harmless{};
    for (const ScheduleKind& kind : schedule_kinds()) {
        for (int trial = 0; trial < 40; ++trial) {
            Valid valid;
            if (!make_valid(kind, draw, valid)) continue;
            ASSERT_NO_THROW(check_schedule(valid.lowered, valid.edges, valid.options)) << kind.name;
            for (int round = 0; round < 40; ++round) {
                const auto which = static_cast<size_t>(draw(kNumMutations));
                const auto mutation = static_cast<Mutation>(which);
                Schedule mutant = valid.lowered;
                if (!mutate(mutant, mutation, draw)) continue;
                if (!passes(mutant, valid.edges, valid.options)) {
                    ++num_refused[which];
                    continue;
                }
                ++num_harmless[which];
                ASSERT_TRUE(may_be_harmless(mutation)) << kind.name << ", mutation " << which;
                const std::vector<std::string> differences = symbolic_differences(valid.model, mutant, valid.channels);
                ASSERT_TRUE(differences.empty()) << kind.name << ", mutation " << which << ": " << differences.front();
            }
        }
    }
    for (size_t which = 0; which < kNumMutations; ++which) EXPECT_GT(num_refused[which], 20) << "mutation " << which;
    EXPECT_GT(num_harmless[static_cast<size_t>(Mutation::SwapNeighbours)], 20) << "the checker refuses too much";
}

// The checker is needed: most of what it refuses gives other trees, or none.
TEST(Mutations, WhatIsRefusedIsMostlyHarmful) {
    Random draw(7);
    int num_refused = 0, num_harmful = 0;
    for (int trial = 0; trial < 60; ++trial) {
        Valid valid;
        if (!make_valid(schedule_kinds().at(static_cast<size_t>(trial) % 4), draw, valid)) continue;
        for (int round = 0; round < 20; ++round) {
            Schedule mutant = valid.lowered;
            const auto mutation = std::array{Mutation::Drop, Mutation::MoveToRank, Mutation::SwapNeighbours}.at(
                static_cast<size_t>(draw(3)));
            if (!mutate(mutant, mutation, draw) || passes(mutant, valid.edges, valid.options)) continue;
            ++num_refused;
            num_harmful += !symbolic_differences(valid.model, mutant, valid.channels).empty();
        }
    }
    EXPECT_GT(num_refused, 300);
    EXPECT_GT(num_harmful, num_refused * 3 / 4);
}

}  // namespace
}  // namespace vpp
