#include "schedule/metrics.hpp"

#include "schedule/generators.hpp"
#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

ScheduleMetrics measure(const std::string& name, const ScheduleSize& size, const std::string& costs_text) {
    const ScheduleCosts costs = parse_costs(costs_text, size);
    const Schedule compute = make_schedule(name, {size, costs});
    return measure_schedule(lower(compute, chain_edges(compute.num_stages())), costs);
}

// P = 2, M = 4, F = 1, B = 2: makespan (M + P - 1) * 3 = 15, of which 12 is work.
TEST(MeasureSchedule, OneFOneB) {
    const ScheduleMetrics metrics = measure("1F1B", {2, 1, 4}, "F=1,I=1,W=1");
    EXPECT_EQ(metrics.schedule, "1F1B");
    EXPECT_EQ(metrics.makespan, 15);
    EXPECT_EQ(metrics.span, 15);
    EXPECT_EQ(metrics.bubble_makespan, 3.0 / 15);
    EXPECT_EQ(metrics.bubble_span, 3.0 / 15);
    EXPECT_EQ(metrics.num_messages, 8);
    ASSERT_EQ(metrics.ranks.size(), 2U);
    EXPECT_EQ(metrics.ranks[0].busy, 12);
    EXPECT_EQ(metrics.ranks[0].idle, 3);
    EXPECT_EQ(metrics.ranks[1].first_start, 1);
    EXPECT_EQ(metrics.ranks[1].last_end, 13);
    EXPECT_EQ(metrics.ranks[0].peak_activations, 2);
    EXPECT_EQ(metrics.ranks[1].peak_activations, 1);
    EXPECT_EQ(metrics.ranks[1].num_sends, 4);
}

// Full-rank figures do not change their unit with v: work is M (F + I + W), the bubble (P-1)(F+B)/v.
TEST(MeasureSchedule, FiguresAreThoseOfAFullRank) {
    const ScheduleMetrics metrics = measure("INTERLEAVED_1F1B", {4, 2, 8}, "F=1,I=1,W=1");
    EXPECT_EQ(metrics.stages_per_rank, 2);
    EXPECT_EQ(metrics.makespan, 8 * 3 + 3 * 3 / 2.0);
    EXPECT_EQ(metrics.bubble_makespan, 4.5 / 28.5);
    EXPECT_EQ(metrics.ranks[0].busy, 24);
    EXPECT_EQ(metrics.ranks[0].peak_activations, 11 / 2.0);  // w + 1 = 2 * 3 + 4 + 1 stage activations
    EXPECT_EQ(metrics.peak_activations(), 11 / 2.0);
}

// The closed form of GPipe with transfers, in whole numbers: (M + P - 1)(F + B) + 2 (P - 1) c.
TEST(MeasureSchedule, TransfersLengthenTheSpanOnlyWhereRanksWait) {
    const ScheduleMetrics metrics = measure("GPIPE", {4, 1, 8}, "F=1,I=1,W=1,comm=0.5");
    EXPECT_EQ(metrics.makespan, 11 * 3 + 6 * 0.5);
    EXPECT_EQ(metrics.bubble_makespan, (36 - 24) / 36.0);
}

TEST(MeasureSchedule, UnevenStagesCountWithTheMeanOfTheRanks) {
    const ScheduleMetrics metrics = measure("1F1B", {2, 1, 4}, "F=1/3,I=1/3,W=1/3");
    EXPECT_EQ(metrics.bubble_makespan, (metrics.makespan - 4 * (3 + 9) / 2.0) / metrics.makespan);
    EXPECT_EQ(metrics.ranks[0].busy, 12);
    EXPECT_EQ(metrics.ranks[1].busy, 36);
}

TEST(MeasureSchedule, APairIsBusyForItsOwnTimeOnly) {
    Schedule compute{"CUSTOM", 1, 2, {0}, {}, false};
    compute.actions = {{{ActionKind::F, 0, 0}, {ActionKind::F, 0, 1, -1, -1, true}, {ActionKind::B, 0, 0}}};
    compute.actions[0].push_back({ActionKind::B, 0, 1});
    ScheduleCosts costs;
    costs.overlap_percent = 100;
    const ScheduleMetrics metrics = measure_schedule(compute, costs);
    EXPECT_EQ(metrics.makespan, 5);
    EXPECT_EQ(metrics.bubble_makespan, 0);
    EXPECT_EQ(metrics.bubble_span, 0);
    EXPECT_EQ(metrics.ranks[0].busy, 5);
}

ScheduleMetrics measure_overlap(int percent) {
    return measure("DUALPIPE_V", {4, 2, 16}, "F=1,B=2,overlap=" + std::to_string(percent));
}

// A step is shorter the more its pairs overlap, and what is idle of it is never less than nothing.
TEST(MeasureSchedule, EveryPercentOfOverlapShortensTheStep) {
    double before = measure_overlap(0).makespan;
    EXPECT_EQ(before, 51);
    EXPECT_EQ(measure_overlap(50).makespan, 44.5);
    for (int percent = 1; percent <= 100; ++percent) {
        const ScheduleMetrics metrics = measure_overlap(percent);
        double idle = 0;
        for (const RankMetrics& rank : metrics.ranks) idle += rank.idle;
        EXPECT_NEAR(metrics.bubble_makespan, idle / (4 * metrics.makespan), 1e-12) << percent;
        EXPECT_GE(metrics.bubble_span, 0) << percent;
        EXPECT_LT(metrics.makespan, before) << percent;
        before = metrics.makespan;
    }
    EXPECT_EQ(before, 38);
}

TEST(MeasureSchedule, NothingToDoIsNoBubble) {
    ScheduleCosts free;
    free.stages.assign(2, {0, 0, 0, 0});
    const Schedule compute = make_schedule("GPIPE", 2, 1, 2);
    EXPECT_EQ(measure_schedule(lower(compute, chain_edges(2)), free).bubble_makespan, 0);
}

}  // namespace
}  // namespace vpp
