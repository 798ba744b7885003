#include "schedule/held_sends.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

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

/// The messages of one rank as held_sends describes them, each looked at before every transfer.
class PlainHeld {
  public:
    struct Message {
        Action send;
        size_t taken_after;
    };
    void hold(const Action& send, size_t taken_after) { held_.push_back({send, taken_after}); }
    void hear_of(int peer, size_t num_actions) { known_[peer] = std::max(known_[peer], num_actions); }
    void let_go(int sends_behind) {
        std::map<int, int> num_taken;  // by rank
        for (size_t i = held_.size(); i-- > 0;) {
            const Action& send = held_[i].send;
            const bool is_taken = held_[i].taken_after <= known_[send.peer];
            if (is_taken && ++num_taken[send.peer] > sends_behind)
                held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
        }
    }
    int64_t bytes() const { return 10 * static_cast<int64_t>(held_.size()); }

  private:
    std::vector<Message> held_;
    std::map<int, size_t> known_;  // by rank: so many of its actions are over
};

Rows held_plainly(const Schedule& lowered, int receives_ahead, int sends_behind) {
    const MessageNumbers number(lowered);
    std::vector<size_t> taken_after(number.size(), 0), sent_after(number.size(), 0);
    for (const std::vector<Action>& list : lowered.actions) {
        std::vector<size_t> places(static_cast<size_t>(receives_ahead), 0);  // behind each of the receives so far
        for (size_t k = 0; k < list.size(); ++k) {
            if (is_send(list[k].kind)) sent_after[number(list[k])] = k;
            if (!is_receive(list[k].kind)) continue;
            places.push_back(k + 1);
            taken_after[number(list[k])] = places[places.size() - 1 - static_cast<size_t>(receives_ahead)];
        }
    }
    Rows rows;
    for (const std::vector<Action>& list : lowered.actions) {
        PlainHeld held;
        std::vector<int64_t>& row = rows.emplace_back();
        for (const Action& action : list) {
            if (is_transfer(action.kind)) held.let_go(sends_behind);
            if (is_receive(action.kind)) held.hear_of(action.peer, sent_after[number(action)]);
            if (is_send(action.kind)) held.hold(action, taken_after[number(action)]);
            row.push_back(held.bytes());
        }
    }
    return rows;
}

// Skips and schedules of two stages a rank bring messages of one link that are taken in another order than sent.
TEST(HeldSends, AreWhatALookAtEachMessageGives) {
    for (const ScheduleKind& kind : schedule_kinds()) {
        const int v = kind.fewest_per_rank;
        for (uint64_t seed = 0; seed < 3; ++seed) {
            const Schedule lowered = lower(make_schedule(kind.name, 4, v, 8), testing::random_edges(4 * v, seed));
            for (int ahead : {0, 1, 4}) {
                for (int behind : {0, 1, 3})
                    ASSERT_EQ(held(lowered, ahead, behind), held_plainly(lowered, ahead, behind)) << kind.name << seed;
            }
        }
    }
}

// As many as a rank holds, so often it does something: a look at each took a minute here.
TEST(HeldSends, AreFoundWithoutALookAtEach) {
    const Schedule lowered = lower(make_schedule("GPIPE", 2, 1, 40000), chain_edges(2));
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(held(lowered, 0)[1].back(), 400000);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(3));
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
