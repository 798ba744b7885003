#include "schedule/tied_order.hpp"

#include <algorithm>

#include "schedule/generators.hpp"
#include "schedule/memory.hpp"
#include "schedule/symbolic.hpp"
#include "unit/schedule/support.hpp"
#include "unit/schedule/variants.hpp"

namespace vpp {
namespace {

using testing::error_text;
using testing::prove;
using testing::texts;
using enum ActionKind;

/// A chain, and one parameter that all of `users` (ascending) share.
std::vector<ScheduleEdge> tied_chain(int num_stages, const std::vector<int>& users) {
    std::vector<ScheduleEdge> edges = chain_edges(num_stages);
    for (size_t k = 1; k < users.size(); ++k) {
        edges.push_back({static_cast<int>(edges.size()), users[0], users[k], true, users[k - 1], true});
    }
    return edges;
}

Schedule two_ranks(std::vector<Action> first, std::vector<Action> second, int num_microbatches) {
    return {"X", 2, num_microbatches, {0, 1}, {std::move(first), std::move(second)}};
}

// The last rank does its W late; at unit costs they are done at 6, 9 and 10.
TEST(OrderTied, WGoesToTheFirstPlaceWhereItsGradientsAre) {
    const std::vector<ScheduleEdge> edges = tied_chain(2, {0, 1});
    const Schedule compute = make_schedule("ZERO_BUBBLE_H1", 2, 1, 3);
    const Schedule ordered = order_tied(compute, edges);
    EXPECT_EQ(texts(compute),
              (std::vector<std::string>{"0F0 0F1 0I0 0W0 0F2 0I1 0W1 0I2 0W2", "1F0 1I0 1F1 1I1 1W0 1F2 1I2 1W1 1W2"}));
    EXPECT_EQ(texts(ordered),
              (std::vector<std::string>{"0F0 0F1 0I0 0F2 0I1 0W0 0I2 0W1 0W2", "1F0 1I0 1F1 1I1 1W0 1F2 1I2 1W1 1W2"}));
    // What it gives and what it costs.
    EXPECT_EQ(prove(compute, edges).simulation.makespan, 14);
    EXPECT_EQ(prove(ordered, edges).simulation.makespan, 11);
    EXPECT_EQ(peak_memory(lower(compute, edges), edges), (std::vector<int64_t>{2, 2}));
    EXPECT_EQ(peak_memory(lower(ordered, edges), edges), (std::vector<int64_t>{3, 2}));
}

TEST(OrderTied, CostsSayWhenTheyAreThere) {
    const std::vector<ScheduleEdge> edges = tied_chain(2, {0, 1});
    const Schedule compute = two_ranks({{F, 0, 0}, {I, 0, 0}, {W, 0, 0}, {F, 0, 1}, {I, 0, 1}, {W, 0, 1}},
                                       {{F, 1, 0}, {I, 1, 0}, {W, 1, 0}, {F, 1, 1}, {I, 1, 1}, {W, 1, 1}}, 2);
    // At unit costs W of stage 1 is done when I of stage 0 is; with dear transfers it comes later.
    EXPECT_EQ(texts(order_tied(compute, edges)), texts(compute));
    ScheduleCosts late;
    late.transfer_of[1] = 2;
    EXPECT_EQ(texts(order_tied(compute, edges, late))[0], "0F0 0I0 0F1 0W0 0I1 0W1");
    // Where the list could go on at the same time, W goes first: its memory is free then.
    const Schedule three = two_ranks({{F, 0, 0}, {I, 0, 0}, {W, 0, 0}, {F, 0, 1}, {F, 0, 2}, {B, 0, 1}, {B, 0, 2}},
                                     {{F, 1, 0}, {I, 1, 0}, {W, 1, 0}, {F, 1, 1}, {B, 1, 1}, {F, 1, 2}, {B, 1, 2}}, 3);
    late.transfer_of[1] = 1;
    EXPECT_EQ(texts(order_tied(three, edges, late))[0], "0F0 0I0 0F1 0W0 0F2 0I1 0W1 0I2 0W2");
}

TEST(OrderTied, ABThatWouldWaitIsSplit) {
    const std::vector<Action> late_weights{{F, 1, 0}, {I, 1, 0}, {F, 1, 1}, {I, 1, 1}, {W, 1, 0}, {W, 1, 1}};
    const std::vector<ScheduleEdge> edges = tied_chain(2, {0, 1});
    const Schedule single = two_ranks({{F, 0, 0}, {F, 0, 1}, {B, 0, 0}, {B, 0, 1}}, late_weights, 2);
    EXPECT_EQ(texts(order_tied(single, edges))[0], "0F0 0F1 0I0 0I1 0W0 0W1");
    const Schedule paired = two_ranks({{F, 0, 0}, {F, 0, 1, -1, -1, true}, {B, 0, 0}, {B, 0, 1}},
                                      {{F, 1, 0}, {I, 1, 0}, {F, 1, 1}, {I, 1, 1}, {W, 1, 0}, {W, 1, 1}}, 2);
    EXPECT_EQ(texts(order_tied(paired, edges))[0], "0F0 0F1& 0I0 0I1 0W0 0W1");
    EXPECT_NO_THROW(prove(order_tied(paired, edges), edges));
    // By the time of the second B its gradient is there: it stays whole.
    const Schedule second = two_ranks({{F, 0, 0}, {F, 0, 1}, {B, 0, 0}, {B, 0, 1}},
                                      {{F, 1, 0}, {I, 1, 0}, {W, 1, 0}, {F, 1, 1}, {B, 1, 1}}, 2);
    EXPECT_EQ(texts(order_tied(second, edges))[0], "0F0 0F1 0I0 0W0 0B1");
}

// Stages 0 and 4 share a parameter, and so do 1 and 3; nothing else leads from 4 or 3 to the rank of 0 and 1. There W
// of stage 1 is put off first, and the gradient for 0 comes first.
TEST(OrderTied, OfTheWsThatAreLeftTheOneGoesWhoseGradientsAreThere) {
    std::vector<ScheduleEdge> edges = chain_edges(5);
    edges.push_back({4, 0, 4, true, 0, true});
    edges.push_back({5, 1, 3, true, 1, true});
    const auto of_stage = [](int stage) { return std::vector<Action>{{F, stage, 0}, {I, stage, 0}, {W, stage, 0}}; };
    const Schedule compute{
        "X",
        4,
        1,
        {0, 0, 1, 2, 3},
        {{{F, 0, 0}, {F, 1, 0}, {I, 1, 0}, {W, 1, 0}, {I, 0, 0}, {W, 0, 0}}, of_stage(2), of_stage(3), of_stage(4)}};
    ScheduleCosts slow_weights;
    slow_weights.stages.assign(5, {1, 2, 1, 10});
    EXPECT_EQ(texts(order_tied(compute, edges, slow_weights))[0], "0F0 1F0 1I0 0I0 0W0 1W0");
}

// The user is done with microbatch 1 first.
TEST(OrderTied, TheWOfAStageStayInOrderWhereTheirGradientsComeInAnother) {
    const std::vector<Action> descending_weights{{F, 1, 0}, {F, 1, 1}, {I, 1, 0}, {I, 1, 1}, {W, 1, 1}, {W, 1, 0}};
    const std::vector<ScheduleEdge> edges = tied_chain(2, {0, 1});
    const Schedule compute =
        two_ranks({{F, 0, 0}, {F, 0, 1}, {I, 0, 0}, {W, 0, 0}, {I, 0, 1}, {W, 0, 1}}, descending_weights, 2);
    EXPECT_EQ(texts(order_tied(compute, edges))[0], "0F0 0F1 0I0 0I1 0W0 0W1");
    const Schedule whole = two_ranks({{F, 0, 0}, {F, 0, 1}, {B, 0, 0}, {B, 0, 1}}, descending_weights, 2);
    EXPECT_EQ(texts(order_tied(whole, edges))[0], "0F0 0F1 0I0 0I1 0W0 0W1");
}

TEST(OrderTied, NothingChangesWithoutTiedEdgesOrWithoutI) {
    for (const ScheduleKind& kind : schedule_kinds()) {
        const Schedule compute = make_schedule(kind.name, 3, kind.fewest_per_rank, 6);
        const int num_stages = compute.num_stages();
        EXPECT_EQ(order_tied(compute, chain_edges(num_stages)).actions, compute.actions) << kind.name;
        if (kind.splits_backward) continue;
        EXPECT_EQ(order_tied(compute, tied_chain(num_stages, {0, num_stages - 1})).actions, compute.actions);
    }
    // Nothing but the parameter leads from one stage to the other, and the later B comes late.
    const Schedule whole =
        two_ranks({{F, 0, 0}, {B, 0, 0}, {F, 0, 1}, {B, 0, 1}}, {{F, 1, 0}, {F, 1, 1}, {B, 1, 0}, {B, 1, 1}}, 2);
    EXPECT_EQ(order_tied(whole, {{0, 0, 1, true, 0, true}}).actions, whole.actions);
}

TEST(OrderTied, ADeadlockOfThreeUsersIsGone) {
    const Schedule compute = make_schedule("INTERLEAVED_ZERO_BUBBLE", 4, 4, 1);
    const std::vector<ScheduleEdge> edges = tied_chain(16, {0, 8, 15});
    EXPECT_CONTAINS(error_text(ErrorKind::Plan, [&] { prove(compute, edges); }), "it never ends");
    EXPECT_NO_THROW(prove(order_tied(compute, edges), edges));
}

TEST(OrderTied, ListsThatDoNotEndKeepTheirActions) {
    const Schedule compute = two_ranks({{F, 0, 0}, {I, 0, 0}, {W, 0, 0}}, {{I, 1, 0}, {F, 1, 0}, {W, 1, 0}}, 1);
    const Schedule ordered = order_tied(compute, tied_chain(2, {0, 1}));
    EXPECT_EQ(ordered.actions[1].size(), 3U);
    EXPECT_CONTAINS(error_text(ErrorKind::Plan, [&] { prove(ordered, chain_edges(2)); }), "1I0 comes before 1F0");
    // W of microbatch 0 is put off when the lists stand still.
    const Schedule stuck = two_ranks({{F, 0, 0}, {I, 0, 0}, {W, 0, 0}, {I, 0, 1}, {F, 0, 1}, {W, 0, 1}},
                                     {{F, 1, 0}, {I, 1, 0}, {F, 1, 1}, {I, 1, 1}, {W, 1, 0}, {W, 1, 1}}, 2);
    EXPECT_EQ(texts(order_tied(stuck, tied_chain(2, {0, 1})))[0], "0F0 0I0 0I1 0F1 0W1 0W0");
}

/// The F, I and B of every rank in order, with B as I; or the W of every stage.
std::vector<std::vector<Action>> kept_order(const Schedule& schedule, bool weights) {
    std::vector<std::vector<Action>> orders(weights ? schedule.rank_of_stage.size() : schedule.actions.size());
    for (size_t rank = 0; rank < schedule.actions.size(); ++rank) {
        for (Action action : schedule.actions[rank]) {
            if (weights && !gives_weight_gradient(action.kind)) continue;
            if (!weights && action.kind == W) continue;
            if (action.kind == B) action.kind = weights ? W : I;
            action.paired = action.paired && !weights;
            orders[weights ? static_cast<size_t>(action.stage) : rank].push_back(action);
        }
    }
    return orders;
}

/// Some of the stages, at least two where there are so many.
std::vector<int> random_users(int num_stages, uint64_t& key) {
    std::vector<int> users;
    for (int stage = 0; stage < num_stages; ++stage) {
        if ((key = mix64(key)) % 3 == 0) users.push_back(stage);
    }
    return users.size() >= 2 ? users : std::vector<int>{0, num_stages - 1};
}

// Any schedule, any group of users, any costs: it ends, F and I stay in order, and nothing waits longer than before.
void run_tied_groups(int num_trials) {
    uint64_t key = 1;
    int num_mended = 0, num_changed = 0;
    for (const ScheduleKind& kind : schedule_kinds()) {
        if (!kind.trains || *kind.same_as) continue;
        const bool tries_many_blocks = std::string(kind.name) == "V_ADAPTIVE";  // some 0.1 s each
        for (int trial = 0; trial < (tries_many_blocks ? num_trials / 8 : num_trials); ++trial) {
            key = mix64(key);
            const int v = std::min(kind.fewest_per_rank + static_cast<int>(key % 3), kind.most_per_rank);
            const ScheduleSize size{1 + static_cast<int>(key / 3 % 4), v, 1 + static_cast<int>(key / 12 % 9)};
            if (size.num_stages() < 2) continue;
            ScheduleCosts costs;
            for (int stage = 0; stage < size.num_stages(); ++stage) {
                const auto draw = [&] { return static_cast<Ticks>(1 + (key = mix64(key)) % 5); };
                costs.stages.push_back({draw(), draw(), draw(), draw()});
            }
            costs.transfer = static_cast<Ticks>(key % 3);
            Schedule compute;
            try {
                compute = make_schedule(kind.name, {.size = size, .costs = costs});
            } catch (const Error& error) {
                ASSERT_EQ(error.kind(), ErrorKind::Plan);
                continue;
            }
            const std::vector<ScheduleEdge> edges = tied_chain(size.num_stages(), random_users(size.num_stages(), key));
            const Schedule ordered = order_tied(compute, edges, costs);
            ASSERT_NO_THROW(prove(ordered, edges, costs)) << kind.name << ", trial " << trial;
            ASSERT_EQ(kept_order(ordered, false), kept_order(compute, false)) << kind.name << ", trial " << trial;
            ASSERT_EQ(kept_order(ordered, true), kept_order(compute, true)) << kind.name << ", trial " << trial;
            num_changed += ordered.actions != compute.actions;
            try {
                prove(compute, edges);
            } catch (const Error&) {
                ++num_mended;
            }
        }
    }
    EXPECT_GT(num_changed, num_trials);
    EXPECT_GT(num_mended, num_trials / 40);
}

TEST(OrderTied, EveryScheduleRunsWithAnyTiedGroup) {
    run_tied_groups(40);
}

TEST(OrderTiedFull, EveryScheduleRunsWithAnyTiedGroup) {
    run_tied_groups(600);
}

// Over random models (skips, several tied groups, recompute) the trees stay those of one device.
TEST(OrderTied, GradientsAreThoseOfOneDevice) {
    int num_changed = 0;
    for (uint64_t seed = 0; seed < 300; ++seed) {
        const SymbolicModel model = make_random_model(4, seed);
        const char* name = seed % 3 == 0 ? "ZERO_BUBBLE_V" : seed % 3 == 1 ? "INTERLEAVED_ZERO_BUBBLE" : "V_HALF";
        const Schedule compute = make_schedule(name, 2, 2, 5);
        const Schedule ordered = order_tied(compute, model.schedule_edges());
        num_changed += ordered.actions != compute.actions;
        const Schedule lowered = lower(ordered, model.schedule_edges(), {.reduce_gradients = true});
        ASSERT_NO_THROW(check_schedule(lowered, model.schedule_edges())) << name << ", seed " << seed;
        ASSERT_EQ(symbolic_differences(model, lowered), std::vector<std::string>{}) << name << ", seed " << seed;
    }
    EXPECT_GT(num_changed, 50);
}

}  // namespace
}  // namespace vpp
