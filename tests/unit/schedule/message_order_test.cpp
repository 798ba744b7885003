#include "schedule/message_order.hpp"

#include "schedule/generators.hpp"
#include "schedule/symbolic.hpp"
#include "schedule/tied_order.hpp"
#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

using enum ActionKind;

bool passes_in_order(const Schedule& lowered, const std::vector<ScheduleEdge>& edges, const CheckOptions& options) {
    try {
        check_schedule(lowered, edges, options);
        return true;
    } catch (const Error&) {
        return false;
    }
}

// Stage 0 makes values 0 (used last) and 1 (used first): the receive of value 0 moves in front of that of value 1.
TEST(OrderChannels, AReceiveMovesInFrontOfALaterOne) {
    const std::vector<ScheduleEdge> edges{{0, 0, 3, false, 0}, {1, 0, 1, false, 0}};
    const Schedule compute{"X", 2, 1, {0, 1, 0, 1}, {{{F, 0, 0}, {F, 2, 0}}, {{F, 1, 0}, {F, 3, 0}}}, true};
    const Schedule lowered = lower(compute, edges);
    EXPECT_EQ(to_text(lowered.actions[1]), "1RECV_F0<0 1F0 3RECV_F0<0 3F0");
    EXPECT_FALSE(passes_in_order(lowered, edges, {.ordered_channels = true}));
    const Schedule ordered = order_channels(lowered);
    EXPECT_EQ(to_text(ordered.actions[1]), "3RECV_F0<0 1RECV_F0<0 1F0 3F0");
    EXPECT_EQ(ordered.actions[0], lowered.actions[0]);
    EXPECT_TRUE(passes_in_order(ordered, edges, {.ordered_channels = true}));
}

TEST(OrderChannels, WhatIsInOrderStaysAsItIs) {
    const Schedule lowered = lower(make_schedule("1F1B", 4, 1, 6), chain_edges(4));
    EXPECT_EQ(order_channels(lowered).actions, lowered.actions);
}

// 1F1B: rank 1 takes F1 before it goes on to B0, whose send rank 0 is then ready for.
TEST(OrderGlobally, ReceivesStandWhereTheSendIsDone) {
    const Schedule lowered = lower(make_schedule("1F1B", 2, 1, 2), chain_edges(2));
    EXPECT_FALSE(passes_in_order(lowered, chain_edges(2), {.rendezvous = true}));
    const Schedule ordered = order_globally(lowered);
    EXPECT_EQ(to_text(ordered.actions[0]), "0F0 0SEND_F0>1 0F1 0SEND_F1>1 0RECV_B0<1 0B0 0RECV_B1<1 0B1");
    EXPECT_EQ(to_text(ordered.actions[1]), "1RECV_F0<0 1F0 1RECV_F1<0 1B0 1SEND_B0>0 1F1 1B1 1SEND_B1>0");
    EXPECT_TRUE(passes_in_order(ordered, chain_edges(2), {.ordered_channels = true, .rendezvous = true}));
}

TEST(OrderGlobally, PairsStayTogether) {
    Action first{F, 1, 1};
    first.paired = true;
    const Schedule compute{
        "X", 2, 2, {0, 1}, {{{F, 0, 0}, {F, 0, 1}, {B, 0, 0}, {B, 0, 1}}, {{F, 1, 0}, first, {B, 1, 0}, {B, 1, 1}}}};
    const Schedule ordered = order_globally(lower(compute, chain_edges(2)));
    EXPECT_EQ(to_text(ordered.actions[1]), "1RECV_F0<0 1F0 1RECV_F1<0 1F1& 1B0 1SEND_B0>0 1B1 1SEND_B1>0");
    EXPECT_TRUE(passes_in_order(ordered, chain_edges(2), {.ordered_channels = true, .rendezvous = true}));
}

struct Tally {
    int num_run = 0, num_crossing = 0, num_blocking = 0;
};

/// One schedule over one model at one cost profile: what each order promises.
void try_orders(const Schedule& compute, const SymbolicModel& model, const ScheduleCosts& costs, Tally& tally) {
    const std::vector<ScheduleEdge> edges = model.schedule_edges();
    const Schedule lowered = lower(compute, edges);
    const Schedule channels = lower(compute, edges, {.order = MessageOrder::Channels});
    const Schedule global = lower(compute, edges, {.order = MessageOrder::Global, .costs = costs});
    ASSERT_NO_THROW(check_schedule(channels, edges, {.ordered_channels = true}));
    ASSERT_NO_THROW(check_schedule(global, edges, {.ordered_channels = true, .rendezvous = true}));
    for (const Schedule* schedule : {&channels, &global}) {
        const std::vector<std::string> differences = symbolic_differences(model, *schedule, Channels::Ordered);
        ASSERT_TRUE(differences.empty()) << differences.front();
    }
    // Ordered channels cost nothing when messages take equally long.
    const Ticks makespan = simulate(lowered, costs).makespan;
    EXPECT_EQ(simulate(channels, costs).makespan, makespan);
    EXPECT_GE(simulate(global, costs).makespan, makespan);
    ++tally.num_run;
    tally.num_crossing += !passes_in_order(lowered, edges, {.ordered_channels = true});
    tally.num_blocking += !passes_in_order(lowered, edges, {.rendezvous = true});
}

TEST(MessageOrder, HoldsForEverySchedule) {
    uint64_t key = 17;
    const auto draw = [&](int bound) { return static_cast<int>((key = mix64(key)) % static_cast<uint64_t>(bound)); };
    Tally tally;
    for (const ScheduleKind& kind : schedule_kinds()) {
        for (int trial = 0; trial < 60; ++trial) {
            const int P = 1 + draw(4), v = std::min(kind.fewest_per_rank + draw(2), kind.most_per_rank);
            const int M = 1 + draw(8);
            Schedule compute;
            try {
                compute = make_schedule(kind.name, P, v, M);
            } catch (const Error&) {
                continue;  // a size that the schedule cannot take
            }
            ScheduleCosts costs;
            for (int stage = 0; stage < P * v; ++stage) costs.stages.push_back({draw(5), draw(9), draw(5), draw(5)});
            costs.transfer = draw(4);
            if (draw(2) == 0) costs.occupied = costs.transfer;
            SCOPED_TRACE(std::string(kind.name) + " P " + std::to_string(P) + " v " + std::to_string(v) + " M " +
                         std::to_string(M));
            const SymbolicModel model = make_random_model(P * v, key);
            const Schedule ordered = order_tied(compute, model.schedule_edges(), costs);
            ASSERT_NO_FATAL_FAILURE(try_orders(ordered, model, costs, tally));
        }
    }
    EXPECT_GT(tally.num_run, 100);
    EXPECT_GT(tally.num_crossing, 20) << "the orders change nothing";
    EXPECT_GT(tally.num_blocking, 20);
}

}  // namespace
}  // namespace vpp
