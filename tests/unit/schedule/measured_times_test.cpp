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

/// The host hands out in 1 ms each and waits 2 for every message; the card computes F in 10, B in 20 and is idle for 5
/// before each.
std::vector<ActionSpan> on_a_card(const std::vector<Action>& actions) {
    constexpr int64_t kMs = 1'000'000;
    std::vector<ActionSpan> spans;
    int64_t host = 100 * kMs, card = host;
    for (const Action& action : actions) {
        const int64_t wait = is_receive(action.kind) ? 2 * kMs : 0;
        ActionSpan& span = spans.emplace_back(ActionSpan{host, host + kMs + wait, wait});
        host = span.end;
        if (is_transfer(action.kind)) {
            span.device_begin = card;  // when a link moved it, where that is asked
            span.device_end = card + 3 * kMs;
        }
        if (!is_computing(action.kind)) continue;
        span.device_begin = card + 5 * kMs;
        span.device_end = card = span.device_begin + (action.kind == ActionKind::F ? 10 : 20) * kMs;
    }
    return spans;
}

TEST(StageTimes, OfACardAreItsOwn) {
    const Schedule lowered = lowered_schedule("1F1B", 2, 1, 4);
    std::vector<StageTimes> times(2);
    for (int rank = 0; rank < 2; ++rank) {
        const std::vector<Action>& actions = lowered.actions[static_cast<size_t>(rank)];
        const std::vector<ActionSpan> spans = on_a_card(actions);
        const std::vector<ActionSpan> work = work_spans(actions, spans);
        for (size_t i = 0; i < actions.size(); ++i) {
            const int64_t idle = is_computing(actions[i].kind) ? 5'000'000 : 0;
            EXPECT_EQ(work[i].wait, idle);
            EXPECT_EQ(work[i].begin, i == 0 ? spans[0].begin : work[i - 1].end) << "one behind the other";
            EXPECT_EQ(work[i].end, idle > 0 ? spans[i].device_end : work[i].begin);
        }
        times[static_cast<size_t>(rank)] += stage_times(lowered, rank, spans)[static_cast<size_t>(rank)];
    }
    for (const StageTimes& stage : times) {
        EXPECT_NEAR(stage.forward, 0.040, 1e-12);
        EXPECT_NEAR(stage.backward, 0.080, 1e-12);
        EXPECT_NEAR(stage.wait, 0.040, 1e-12);
        EXPECT_EQ(stage.transfer(), 0);
    }
    EXPECT_NEAR(measured_bubble(lowered, times, 0.160), 0.25, 1e-12);
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
