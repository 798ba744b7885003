#include "schedule/measured_times.hpp"

#include "unit/schedule/measured_support.hpp"

namespace vpp {
namespace {

using testing::lowered_schedule;
using testing::measured;

std::vector<StageTimes> all_times(const Schedule& lowered, const MeasuredStep& step) {
    std::vector<StageTimes> times(lowered.rank_of_stage.size());
    for (const MeasuredRank& rank : step.ranks) {
        const std::vector<StageTimes> own = stage_times(lowered, rank.pp, rank.actions);
        for (size_t stage = 0; stage < times.size(); ++stage) times[stage] += own[stage];
    }
    return times;
}

TEST(StageTimes, ActionsAreAddedUpByStageAndKind) {
    const Schedule lowered = lowered_schedule("1F1B", 2, 1, 4);
    const std::vector<StageTimes> times = all_times(lowered, measured(lowered));
    ASSERT_EQ(times.size(), 2U);
    for (const StageTimes& stage : times) {
        EXPECT_NEAR(stage.forward, 0.004, 1e-12);
        EXPECT_NEAR(stage.backward, 0.008, 1e-12);
        EXPECT_EQ(stage.input_gradient + stage.weight_gradient + stage.transfer(), 0);
    }
    EXPECT_NEAR(times[0].wait, 0.003, 1e-12);  // B0 for one F and one B, B1.. for none but the last's tail
    EXPECT_NEAR(times[1].wait, 0.001, 1e-12);
}

TEST(StageTimes, ReadingAMessageIsNoWait) {
    const Schedule lowered = lowered_schedule("1F1B", 2, 1, 4);
    const std::vector<StageTimes> times = all_times(lowered, measured(lowered, 1'000'000, 0, 1000));
    EXPECT_NEAR(times[1].transfer_forward, 4e-6, 1e-12);
    EXPECT_NEAR(times[0].transfer_backward, 4e-6, 1e-12);
    EXPECT_EQ(times[0].transfer_forward, 0);
}

TEST(StageTimes, EveryActionNeedsItsTime) {
    const Schedule lowered = lowered_schedule("1F1B", 2, 1, 4);
    EXPECT_THROW(stage_times(lowered, 0, {}), Error);
}

TEST(CostsOfTimes, TheSimulatedStepIsTheMeasuredOne) {
    for (const char* name : {"1F1B", "GPIPE", "ZERO_BUBBLE_H1", "INTERLEAVED_1F1B"}) {
        const Schedule lowered = lowered_schedule(name, 4, name == std::string("INTERLEAVED_1F1B") ? 2 : 1, 8);
        const MeasuredStep step = measured(lowered);
        const std::vector<StageTimes> times = all_times(lowered, step);
        const ScheduleCosts costs = costs_of_times(lowered, times);
        const Simulation again = simulate(lowered, costs);
        EXPECT_EQ(again.makespan, step.actions_end() - step.begin()) << name;
        const double seconds = 1e-9 * static_cast<double>(again.makespan);
        EXPECT_NEAR(measured_bubble(lowered, times, seconds), again.bubble_rate(), 1e-9) << name;
        EXPECT_NEAR(costs.units(again.makespan), 1e3 * seconds, 1e-9) << name;
    }
}

TEST(CostsOfTimes, AStageThatIsSlowIsSeen) {
    const Schedule lowered = lowered_schedule("1F1B", 2, 1, 4);
    std::vector<StageTimes> times = all_times(lowered, measured(lowered));
    const Ticks usual = simulate(lowered, costs_of_times(lowered, times)).makespan;
    times[1] *= 3;
    EXPECT_GT(simulate(lowered, costs_of_times(lowered, times)).makespan, 2 * usual);
}

TEST(CostsOfTimes, MessagesCountForTheirRanks) {
    const Schedule lowered = lowered_schedule("1F1B", 2, 1, 4);
    const std::vector<StageTimes> times = all_times(lowered, measured(lowered, 1'000'000, 0, 1000));
    const ScheduleCosts costs = costs_of_times(lowered, times);
    EXPECT_EQ(costs.stages[0].forward, 1'000'000);
    EXPECT_EQ(costs.stages[1].forward, 1'001'000);
    EXPECT_EQ(costs.stages[0].backward, 2'001'000);
}

TEST(CostsOfTimes, WhatIsNotMeasuredIsMadeOfWhatIs) {
    const Schedule whole = lowered_schedule("1F1B", 2, 1, 4), halves = lowered_schedule("ZERO_BUBBLE_H1", 2, 1, 4);
    const StageCosts of_whole = costs_of_times(whole, all_times(whole, measured(whole))).stages[0];
    EXPECT_EQ(of_whole.input_gradient + of_whole.weight_gradient, of_whole.backward);
    const StageCosts of_halves = costs_of_times(halves, all_times(halves, measured(halves))).stages[0];
    EXPECT_EQ(of_halves.backward, of_halves.input_gradient + of_halves.weight_gradient);
}

TEST(MeasuredBubble, NobodyBusyIsAllBubble) {
    const Schedule lowered = lowered_schedule("1F1B", 2, 1, 4);
    EXPECT_EQ(measured_bubble(lowered, std::vector<StageTimes>(2), 1), 1);
    EXPECT_EQ(measured_bubble(lowered, std::vector<StageTimes>(2), 0), 0);
}

}  // namespace
}  // namespace vpp
