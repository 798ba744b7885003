#include "schedule/held_sends.hpp"

#include "schedule/generators.hpp"
#include "schedule/memory.hpp"
#include "schedule/messages.hpp"
#include "schedule/simulator.hpp"
#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

using Rows = std::vector<std::vector<int64_t>>;

Rows held(const Schedule& lowered, int receives_ahead, int sends_behind = 0) {
    return held_sends(lowered, {receives_ahead, sends_behind}, [](int) { return 10; });
}

// Rank 0: F SEND F SEND F SEND, then RECV B three times. Rank 1: RECV F three times, then B SEND three times.
TEST(HeldSends, StayUntilSomethingComesFromWhoHasTakenThem) {
    const Schedule lowered = lower(make_schedule("GPIPE", 2, 1, 3), chain_edges(2));
    EXPECT_EQ(held(lowered, 0), (Rows{{0, 10, 10, 20, 20, 30, 30, 30, 0, 0, 0, 0},
                                      // Nothing comes back to rank 1 that could say so.
                                      {0, 0, 0, 0, 0, 0, 0, 10, 10, 20, 20, 30}}));
}

// All three of rank 1's receives have their buffers when it starts; each is gone with the next transfer.
TEST(HeldSends, AreGoneWhereABufferStandsReady) {
    const Schedule lowered = lower(make_schedule("GPIPE", 2, 1, 3), chain_edges(2));
    EXPECT_EQ(held(lowered, 3)[0], (std::vector<int64_t>{0, 10, 10, 10, 10, 10, 0, 0, 0, 0, 0, 0}));
    EXPECT_EQ(held(lowered, 2)[0], (std::vector<int64_t>{0, 10, 10, 10, 10, 10, 10, 10, 0, 0, 0, 0}));
}

TEST(HeldSends, SomeOfALinkMayStayLonger) {
    const Schedule lowered = lower(make_schedule("GPIPE", 2, 1, 3), chain_edges(2));
    EXPECT_EQ(held(lowered, 0, 1)[0], (std::vector<int64_t>{0, 10, 10, 20, 20, 30, 30, 30, 10, 10, 10, 10}));
    EXPECT_EQ(held(lowered, 0, 2)[0], (std::vector<int64_t>{0, 10, 10, 20, 20, 30, 30, 30, 20, 20, 20, 20}));
}

/// The same where every action ends when simulated with these costs: a send is over with its receive.
Rows held_in_time(const Schedule& lowered, const ScheduleCosts& costs) {
    const Simulation simulation = simulate(lowered, costs);
    const MessageNumbers number(lowered);
    std::vector<Ticks> taken(number.size(), 0);
    for (size_t rank = 0; rank < lowered.actions.size(); ++rank) {
        for (size_t k = 0; k < lowered.actions[rank].size(); ++k) {
            const Action& action = lowered.actions[rank][k];
            if (is_receive(action.kind)) taken[number(action)] = simulation.times[rank][k].end;
        }
    }
    Rows rows;
    for (size_t rank = 0; rank < lowered.actions.size(); ++rank) {
        std::vector<Ticks> held;  // until when
        std::vector<int64_t>& row = rows.emplace_back();
        for (size_t k = 0; k < lowered.actions[rank].size(); ++k) {
            const Action& action = lowered.actions[rank][k];
            const Ticks now = simulation.times[rank][k].start;
            if (is_transfer(action.kind)) std::erase_if(held, [now](Ticks until) { return until <= now; });
            if (is_send(action.kind)) held.push_back(taken[number(action)]);
            row.push_back(10 * static_cast<int64_t>(held.size()));
        }
    }
    return rows;
}

// No timing of stages and messages makes a rank hold more, for any schedule.
TEST(HeldSends, AreTheMostThatAnyTimingLeaves) {
    int64_t num_equal = 0;
    for (const ScheduleKind& kind : schedule_kinds()) {
        const int v = kind.fewest_per_rank;
        const Schedule lowered = lower(make_schedule(kind.name, 4, v, 8), chain_edges(4 * v));
        const Rows most = held(lowered, 0);
        for (uint64_t seed = 0; seed < 20; ++seed) {
            uint64_t key = mix64(seed);
            const auto draw = [&key](uint64_t below) { return static_cast<Ticks>((key = mix64(key)) % below); };
            ScheduleCosts costs;
            for (int stage = 0; stage < 4 * v; ++stage)
                costs.stages.push_back({draw(30), draw(30), draw(30), draw(30)});
            costs.transfer = draw(40);
            const Rows held = held_in_time(lowered, costs);
            for (size_t rank = 0; rank < held.size(); ++rank) {
                for (size_t k = 0; k < held[rank].size(); ++k) {
                    ASSERT_LE(held[rank][k], most[rank][k]) << kind.name << " " << seed << ": " << rank << " " << k;
                    num_equal += held[rank][k] == most[rank][k] && most[rank][k] > 10;
                }
            }
        }
    }
    EXPECT_GT(num_equal, 1000);
}

// The walk adds them to what a rank holds.
TEST(HeldSends, AreInTheMemoryOfActions) {
    const Schedule lowered = lower(make_schedule("GPIPE", 2, 1, 3), chain_edges(2));
    MemoryModel model{{}, {{0, 10}}};
    const std::vector<int64_t> without = memory_by_action(lowered, chain_edges(2), model)[0];
    model.buffers.sends_behind = 0;
    std::vector<int64_t> with = memory_by_action(lowered, chain_edges(2), model)[0];
    for (size_t k = 0; k < with.size(); ++k) with[k] -= without[k];
    EXPECT_EQ(with, held(lowered, 0)[0]);
}

}  // namespace
}  // namespace vpp
