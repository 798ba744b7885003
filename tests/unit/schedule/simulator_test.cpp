#include "schedule/simulator.hpp"

#include "schedule/generators.hpp"
#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

using testing::error_text;
using testing::prove;

TEST(Simulate, TimesOfASmallScheduleByHand) {
    const auto proved = prove(make_schedule("1F1B", 2, 1, 2));
    const Simulation& simulation = proved.simulation;
    // rank 0: F0 0-1, F1 1-2, wait, B0 4-6, wait, B1 7-9; rank 1: F0 1-2, B0 2-4, F1 4-5, B1 5-7
    EXPECT_EQ(simulation.makespan, 9);
    EXPECT_EQ(simulation.busy, (std::vector<Ticks>{6, 6}));
    // F0, SEND_F0, F1, SEND_F1, RECV_B0, B0, RECV_B1, B1
    const std::vector<ActionTime>& times = simulation.times[0];
    ASSERT_EQ(times.size(), 8U);
    EXPECT_EQ(times[2].start, 1);
    EXPECT_EQ(times[4].end - times[4].start, 2);  // the wait
    EXPECT_EQ(times[5].end, 6);
    EXPECT_EQ(times[7].start, 7);
    EXPECT_DOUBLE_EQ(simulation.bubble_rate(), 3.0 / 9);
    EXPECT_EQ(simulation.span, 9);
}

TEST(Simulate, TransfersDelayTheReceiverOnly) {
    ScheduleCosts costs;
    costs.transfer_of = {{0, 5}};
    const auto proved = prove(make_schedule("GPIPE", 2, 1, 1), costs);
    EXPECT_EQ(proved.simulation.makespan, 1 + 5 + 1 + 2 + 5 + 2);
    EXPECT_EQ(proved.simulation.busy, (std::vector<Ticks>{3, 3}));
    EXPECT_EQ(proved.simulation.span, 16);
    const auto without = prove(make_schedule("GPIPE", 2, 1, 8));
    const auto with = prove(make_schedule("GPIPE", 2, 1, 8), costs);
    EXPECT_EQ(with.simulation.makespan - without.simulation.makespan, 2 * 5);  // 2 (P-1) c
}

// Messages of 5: values arrive at 6, 7, 8 side by side, at 6, 11, 16 one after the other; gradients likewise.
TEST(Simulate, TransfersOfAChannelMayWaitForEachOther) {
    ScheduleCosts costs;
    costs.transfer = 5;
    const Schedule lowered = lower(make_schedule("GPIPE", 2, 1, 3), chain_edges(2));
    EXPECT_EQ(simulate(lowered, costs).makespan, 8 + 1 + 3 * 2 + 5 + 2);
    costs.occupied = 5;
    const Simulation serial = simulate(lowered, costs);
    EXPECT_EQ(serial.makespan, 16 + 1 + 2 + 3 * 5 + 2);
    EXPECT_EQ(serial.times[1][4].end, 16);  // the third RECV_F
}

// Latency 4, bandwidth part 3: values leave the channel at 4, 7, 10 and arrive at 8, 11, 14; 1B0 ends at 17, 1B1 at 19,
// 1B2 at 21; gradients leave at 20, 23, 26 and arrive at 24, 27, 30.
TEST(Simulate, LatenciesOfAChannelAreBesideEachOther) {
    ScheduleCosts costs;
    costs.transfer = 7;
    costs.occupied = 3;
    const Simulation simulation = simulate(lower(make_schedule("GPIPE", 2, 1, 3), chain_edges(2)), costs);
    const std::vector<ActionTime>& last = simulation.times[1];  // RECV F RECV F RECV F, then B SEND three times
    EXPECT_EQ(last[0].end, 8);
    EXPECT_EQ(last[2].end, 11);
    EXPECT_EQ(last[4].end, 14);
    EXPECT_EQ(simulation.makespan, 30 + 2);
}

// M values through P ranks at no latency: the slowest of compute and channel sets the pace. F of M microbatches ends
// after (P-1) hops of F + t and M - 1 times max(F, t).
TEST(Simulate, TheChannelMayBeTheBottleneck) {
    for (int P = 2; P <= 6; ++P) {
        for (int M : {1, 3, 10}) {
            for (Ticks forward : {2, 5}) {
                for (Ticks transfer : {0, 1, 3, 7}) {
                    ScheduleCosts costs;
                    costs.stages.assign(static_cast<size_t>(P), {forward, 0, 0, 0});
                    costs.transfer = costs.occupied = transfer;
                    const auto proved = prove(make_schedule("FORWARD_ONLY", P, 1, M), costs);
                    EXPECT_EQ(proved.simulation.makespan,
                              (P - 1) * (forward + transfer) + forward + (M - 1) * std::max(forward, transfer));
                    costs.transfer += 11;  // latency delays every hop once, whatever M is
                    EXPECT_EQ(simulate(proved.lowered, costs).makespan, proved.simulation.makespan + (P - 1) * 11);
                }
            }
        }
    }
}

// Both directions are channels of their own, and so are two pairs of ranks.
TEST(Simulate, ChannelsDoNotWaitForOtherChannels) {
    using enum ActionKind;
    const Schedule schedule{"X",
                            3,
                            1,
                            {0, 1, 2},
                            {{{SendF, 0, 0, 0, 1}, {SendF, 0, 0, 1, 2}, {RecvB, 0, 0, 2, 1}},
                             {{SendB, 1, 0, 2, 0}, {RecvF, 1, 0, 0, 0}},
                             {{RecvF, 2, 0, 1, 0}}}};
    ScheduleCosts costs;
    costs.transfer = costs.occupied = 5;
    EXPECT_EQ(simulate(schedule, costs).makespan, 5);
}

TEST(Simulate, EachStageHasItsOwnCosts) {
    ScheduleCosts costs;
    costs.stages = {{1, 2, 1, 1}, {10, 20, 10, 10}};
    const auto proved = prove(make_schedule("1F1B", 2, 1, 3), costs);
    EXPECT_EQ(proved.simulation.busy, (std::vector<Ticks>{9, 90}));
    EXPECT_EQ(proved.simulation.makespan, 1 + 90 + 2);
    EXPECT_NEAR(proved.simulation.bubble_rate(), (93 - 49.5) / 93, 1e-12);
}

TEST(Simulate, SpanLeavesOutTheRampOfEachRank) {
    const auto proved = prove(make_schedule("FORWARD_ONLY", 4, 1, 6));
    EXPECT_EQ(proved.simulation.makespan, 9);
    EXPECT_EQ(proved.simulation.span, 6);
    EXPECT_EQ(proved.simulation.span_bubble_rate(), 0);
    EXPECT_DOUBLE_EQ(proved.simulation.bubble_rate(), 3.0 / 9);
}

TEST(Simulate, SplitBackwardCostsItsHalves) {
    using enum ActionKind;
    const Schedule schedule{"X", 1, 1, {0}, {{{F, 0, 0}, {I, 0, 0}, {W, 0, 0}}}};
    ScheduleCosts costs;
    costs.stages = {{1, 100, 3, 4}};
    EXPECT_EQ(simulate(schedule, costs).makespan, 8);
}

TEST(Simulate, FreeSchedulesHaveNoBubble) {
    ScheduleCosts costs;
    costs.stages.assign(2, {0, 0, 0, 0});
    const auto proved = prove(make_schedule("GPIPE", 2, 1, 2), costs);
    EXPECT_EQ(proved.simulation.makespan, 0);
    EXPECT_EQ(proved.simulation.bubble_rate(), 0);
}

TEST(Simulate, BadCostsAndStuckSchedulesAreBugs) {
    const Schedule lowered = lower(make_schedule("GPIPE", 2, 1, 2), chain_edges(2));
    ScheduleCosts costs;
    costs.stages = {{1, 2, 1, 1}};
    EXPECT_CONTAINS(error_text(ErrorKind::Bug, [&] { simulate(lowered, costs); }), "every stage has costs");
    costs.stages.assign(2, {1, -2, 1, 1});
    EXPECT_CONTAINS(error_text(ErrorKind::Bug, [&] { simulate(lowered, costs); }), "not negative");
    costs.stages.clear();
    costs.transfer_of[0] = -1;
    EXPECT_CONTAINS(error_text(ErrorKind::Bug, [&] { simulate(lowered, costs); }), "not negative");
    costs.transfer_of[0] = 1;
    costs.occupied_of[0] = 2;
    EXPECT_CONTAINS(error_text(ErrorKind::Bug, [&] { simulate(lowered, costs); }), "a part of its transfer");
    Schedule stuck = lowered;
    stuck.actions[0].erase(stuck.actions[0].begin() + 1);
    EXPECT_CONTAINS(error_text(ErrorKind::Bug, [&] { simulate(stuck); }), "a simulated schedule ends");
}

// Random integer costs: the bubble of 1F1B and GPipe is (P-1)(T_F + T_B), that of interleaved the same over v.
TEST(Simulate, ClosedFormsHoldAtRandomCosts) {
    uint64_t key = 7;
    const auto draw = [&] { return static_cast<Ticks>(1 + (key = mix64(key)) % 9); };
    for (int P = 2; P <= 8; ++P) {
        for (int v = 1; v <= 3; ++v) {
            const Ticks forward = draw(), backward = draw();
            ScheduleCosts costs;
            costs.stages.assign(static_cast<size_t>(P * v), {forward, backward, 1, 1});
            const int M = 2 * P;
            const Ticks expected = (M * v + P - 1) * (forward + backward);
            if (v == 1) {
                EXPECT_EQ(prove(make_schedule("1F1B", P, 1, M), costs).simulation.makespan, expected);
                EXPECT_EQ(prove(make_schedule("GPIPE", P, 1, M), costs).simulation.makespan, expected);
            } else {
                EXPECT_EQ(prove(make_schedule("INTERLEAVED_1F1B", P, v, M), costs).simulation.makespan, expected);
            }
        }
    }
}

}  // namespace
}  // namespace vpp
