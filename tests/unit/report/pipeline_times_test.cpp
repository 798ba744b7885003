#include "report/pipeline_times.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "schedule/edges.hpp"
#include "schedule/generators.hpp"
#include "schedule/lowering.hpp"

namespace vpp {
namespace {

Schedule schedule() {
    return lower(make_schedule("1F1B", 2, 1, 4), chain_edges(2));
}

/// Two stages of F = 1 ms and B = 2 ms.
std::vector<StageTimes> times() {
    StageTimes stage;
    stage.forward = 0.004;
    stage.backward = 0.008;
    stage.wait = 0.001;
    return {stage, stage};
}

TEST(PipelineTimes, AStepTellsItsStagesAndBothBubbles) {
    const Schedule lowered = schedule();
    StepEvent event;
    PipelineTimes(lowered, true).fill(event, times(), 0.020);
    ASSERT_EQ(event.stages.size(), 2U);
    EXPECT_EQ(event.stages[1].rank, 1);
    EXPECT_NEAR(event.stages[1].forward_ms, 4, 1e-9);
    EXPECT_NEAR(event.stages[1].backward_ms, 8, 1e-9);
    EXPECT_NEAR(event.stages[1].wait_ms, 1, 1e-9);
    EXPECT_NEAR(*event.bubble_predicted, 0.2, 1e-6);  // (P - 1) / (M + P - 1)
    EXPECT_NEAR(*event.bubble_idle, 0.4, 1e-9);       // 12 of 20 ms
}

TEST(PipelineTimes, WaitingSaysNothingWithMoreRanksThanCores) {
    const Schedule lowered = schedule();
    StepEvent event;
    PipelineTimes pipeline(lowered, false);
    pipeline.fill(event, times(), 0.020);
    EXPECT_EQ(event.stages.size(), 2U);
    EXPECT_FALSE(event.bubble_idle || event.bubble_predicted);
    pipeline.add(3, times(), 0.020);
    EXPECT_FALSE(pipeline.mean().bubble_idle);
}

TEST(PipelineTimes, TheMeanIsOfTheStepsThatWereAdded) {
    const Schedule lowered = schedule();
    PipelineTimes pipeline(lowered, true);
    std::vector<StageTimes> slow = times();
    for (StageTimes& stage : slow) stage *= 3;
    pipeline.add(3, times(), 0.015);
    pipeline.add(4, slow, 0.045);
    const PipelineEvent mean = pipeline.mean();
    EXPECT_EQ(mean.first_step, 3);
    EXPECT_EQ(mean.step, 4);
    EXPECT_EQ(mean.schedule, "1F1B");
    EXPECT_EQ(mean.num_microbatches, 4);
    EXPECT_NEAR(mean.stages[0].forward_ms, 8, 1e-9);
    EXPECT_NEAR(mean.actions_ms, 30, 1e-9);
    EXPECT_NEAR(mean.predicted_ms, 30, 1e-4);
    EXPECT_NEAR(*mean.bubble_idle, 0.2, 1e-6);
    EXPECT_NEAR(*mean.bubble_predicted, 0.2, 1e-6);
}

TEST(PipelineTimes, NoStepsHaveNoMean) {
    const Schedule lowered = schedule();
    EXPECT_THROW(PipelineTimes(lowered, true).mean(), Error);
}

}  // namespace
}  // namespace vpp
