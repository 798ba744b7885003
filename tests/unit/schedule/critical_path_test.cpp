#include "schedule/critical_path.hpp"

#include <gmock/gmock.h>

#include <numeric>
#include <string>

#include "schedule/generators.hpp"
#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

using ::testing::ElementsAre;

Ticks total(const std::vector<CriticalStep>& path) {
    return std::accumulate(path.begin(), path.end(), Ticks{0},
                           [](Ticks sum, const CriticalStep& step) { return sum + step.time; });
}

/// "rank 0: 0F0 0F1 0SEND_F1>1; rank 1: 1F1 1B1": runs of actions on one rank.
std::string path_text(const Schedule& lowered, const std::vector<CriticalStep>& path) {
    std::string text;
    int rank = -1;
    for (const CriticalStep& step : path) {
        if (step.rank != rank) text += (text.empty() ? "rank " : "; rank ") + std::to_string(step.rank) + ':';
        rank = step.rank;
        text += ' ' + to_text(lowered.actions[static_cast<size_t>(rank)][step.index]);
    }
    return text;
}

TEST(CriticalPath, OfASmallScheduleByHand) {
    const auto proved = testing::prove(make_schedule("1F1B", 2, 1, 2));
    const std::vector<CriticalStep> path = critical_path(proved.lowered, proved.simulation);
    EXPECT_EQ(path_text(proved.lowered, path),
              "rank 0: 0F0 0SEND_F0>1; rank 1: 1F0 1B0 1F1 1B1 1SEND_B1>0; rank 0: 0B1");
    EXPECT_EQ(total(path), 9);
    EXPECT_EQ(path[0].time, 1);
    EXPECT_EQ(path[1].time, 0);
    const CriticalTimes times = critical_times(proved.lowered, path);
    EXPECT_THAT(times.of_stage, ElementsAre(3, 6));
    EXPECT_EQ(times.of_messages, 0);
}

// 0F0, then three transfers one after the other on a slow channel, and three on the way back.
TEST(CriticalPath, GoesThroughMessagesThatWaitForTheirChannel) {
    ScheduleCosts costs;
    costs.transfer = costs.occupied = 5;
    const auto proved = testing::prove(make_schedule("GPIPE", 2, 1, 3), costs);
    const std::vector<CriticalStep> path = critical_path(proved.lowered, proved.simulation, costs);
    EXPECT_EQ(total(path), proved.simulation.makespan);
    EXPECT_EQ(path_text(proved.lowered, path),
              "rank 0: 0F0 0SEND_F0>1 0SEND_F1>1 0SEND_F2>1; rank 1: 1F2 1B0 1SEND_B0>0 1SEND_B1>0 1SEND_B2>0; "
              "rank 0: 0B2");
    const CriticalTimes times = critical_times(proved.lowered, path);
    EXPECT_THAT(times.of_stage, ElementsAre(3, 3));
    EXPECT_EQ(times.of_messages, 6 * 5);
}

TEST(CriticalPath, CountsAPairOnce) {
    using enum ActionKind;
    Action first{F, 0, 1};
    first.paired = true;
    const Schedule schedule{"X", 1, 2, {0}, {{{F, 0, 0}, first, {B, 0, 0}, {B, 0, 1}}}};
    ScheduleCosts costs;
    costs.overlap_percent = 100;
    const Simulation simulation = simulate(schedule, costs);
    const std::vector<CriticalStep> path = critical_path(schedule, simulation, costs);
    EXPECT_EQ(path_text(schedule, path), "rank 0: 0F0 0F1& 0B1");
    EXPECT_EQ(total(path), 1 + 2 + 2);
}

// Its times add up to the makespan, for every schedule, at random costs, with and without waiting channels.
TEST(CriticalPath, AddsUpToTheMakespan) {
    uint64_t key = 3;
    const auto draw = [&](int bound) { return static_cast<int>((key = mix64(key)) % static_cast<uint64_t>(bound)); };
    int num_run = 0;
    for (const ScheduleKind& kind : schedule_kinds()) {
        for (int trial = 0; trial < 40; ++trial) {
            const int P = 1 + draw(5), v = std::min(kind.fewest_per_rank + draw(2), kind.most_per_rank);
            ScheduleCosts costs;
            for (int stage = 0; stage < P * v; ++stage) costs.stages.push_back({draw(5), draw(9), draw(5), draw(5)});
            costs.transfer = draw(4);
            costs.transfer_of[draw(P * v)] = draw(20);
            if (draw(2) == 0) {
                costs.occupied = draw(static_cast<int>(costs.transfer) + 1);
                costs.occupied_of = costs.transfer_of;
            }
            Schedule compute;
            try {
                compute = make_schedule(kind.name, P, v, 1 + draw(12));
            } catch (const Error&) {
                continue;  // a size that the schedule cannot take
            }
            const auto proved = testing::prove(compute, testing::random_edges(P * v, key), costs);
            ASSERT_EQ(total(critical_path(proved.lowered, proved.simulation, costs)), proved.simulation.makespan);
            ++num_run;
        }
    }
    EXPECT_GT(num_run, 100);
}

}  // namespace
}  // namespace vpp
