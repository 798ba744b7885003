#include "engine/step_guard.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.hpp"

namespace vpp::test {
namespace {

using Verdict = StepGuard::Verdict;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

StepGuard guard(const std::string& on_nonfinite, const std::string& on_spike, double sigmas = 6) {
    TrainPlan plan;
    plan.on_nonfinite = on_nonfinite;
    plan.on_spike = on_spike;
    plan.spike_sigmas = sigmas;
    return StepGuard(plan);
}

/// Losses around 2 with a standard deviation of 0.1.
void feed(StepGuard& guard, int count) {
    for (int i = 0; i < count; ++i) EXPECT_EQ(guard.judge(i % 2 ? 2.1 : 1.9, 1).verdict, Verdict::Update);
}

TEST(StepGuard, whatIsNotFiniteStopsOrIsSkipped) {
    for (const double loss : {kInfinity, -kInfinity, kNan}) {
        EXPECT_EQ(guard("stop", "off").judge(loss, 1).verdict, Verdict::Stop);
        EXPECT_EQ(guard("skip", "off").judge(loss, 1).verdict, Verdict::Skip);
        const StepGuard::Judgement judgement = guard("skip", "off").judge(1, loss);
        EXPECT_EQ(judgement.verdict, Verdict::Skip);
        EXPECT_FALSE(judgement.is_finite);
    }
    EXPECT_EQ(guard("stop", "off").judge(-kNan, kInfinity).reason, "the loss is nan and the gradient norm inf");
    EXPECT_EQ(guard("stop", "off").judge(1e300, 1e300).verdict, Verdict::Update);
}

TEST(StepGuard, aTrainingOfSkippedStepsOnlyIsStopped) {
    StepGuard lost = guard("skip", "off");
    for (int i = 0; i < StepGuard::kMostSkips; ++i) EXPECT_EQ(lost.judge(kNan, 1).verdict, Verdict::Skip);
    EXPECT_EQ(lost.judge(kNan, 1).verdict, Verdict::Stop);
    StepGuard recovers = guard("skip", "off");
    for (int i = 0; i < 30; ++i) EXPECT_NE(recovers.judge(i % 10 == 9 ? 1 : kNan, 1).verdict, Verdict::Stop);
}

TEST(StepGuard, aSpikeIsMeasuredInStandardDeviations) {
    const std::pair<const char*, Verdict> words[] = {
        {"off", Verdict::Update}, {"warn", Verdict::Warn}, {"skip", Verdict::Skip}, {"stop", Verdict::Stop}};
    for (const auto& [word, verdict] : words) {
        StepGuard spikes = guard("stop", word);
        feed(spikes, 20);
        EXPECT_EQ(spikes.judge(2.61, 1).verdict, verdict) << word;
    }
    StepGuard close = guard("stop", "stop");
    feed(close, 20);
    EXPECT_EQ(close.judge(2.59, 1).verdict, Verdict::Update);
    EXPECT_EQ(close.judge(0.01, 1).verdict, Verdict::Update) << "a lower loss is none";
}

TEST(StepGuard, tooFewLossesSayNothing) {
    StepGuard young = guard("stop", "stop");
    feed(young, static_cast<int>(StepGuard::kLeastLosses) - 1);
    EXPECT_EQ(young.judge(1000, 1).verdict, Verdict::Update);
    StepGuard old_enough = guard("stop", "stop");
    feed(old_enough, static_cast<int>(StepGuard::kLeastLosses));
    EXPECT_EQ(old_enough.judge(1000, 1).verdict, Verdict::Stop);
}

TEST(StepGuard, aSpikeIsNoMeasureForLaterOnes) {
    StepGuard spikes = guard("stop", "warn");
    feed(spikes, 20);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(spikes.judge(50, 1).verdict, Verdict::Warn);
}

TEST(StepGuard, aFlatLossHasADeviationOfOnePercent) {
    for (const auto& [loss, verdict] : {std::pair{2.11, Verdict::Update}, {2.13, Verdict::Stop}}) {
        StepGuard flat = guard("stop", "stop");
        for (int i = 0; i < 20; ++i) flat.judge(2, 1);
        EXPECT_EQ(flat.judge(loss, 1).verdict, verdict);
    }
}

TEST(StepGuard, aResumedRunJudgesAsTheUnbrokenOne) {
    StepGuard whole = guard("skip", "skip"), first = guard("skip", "skip"), second = guard("skip", "skip");
    for (int i = 0; i < 70; ++i) {
        whole.judge(2 + std::sin(i), 1);
        first.judge(2 + std::sin(i), 1);
    }
    second.restore(first.memory());
    EXPECT_EQ(second.memory(), whole.memory());
    for (const double loss : {2.5, 5.9, 6.3, 1e9, 2.0}) {
        EXPECT_EQ(second.judge(loss, 1).reason, whole.judge(loss, 1).reason);
    }
    EXPECT_EQ(second.memory(), whole.memory());
}

TEST(StepGuard, aResumedRunCountsTheStepsThatWereSkippedBefore) {
    StepGuard first = guard("skip", "off"), second = guard("skip", "off");
    for (int i = 0; i < StepGuard::kMostSkips; ++i) first.judge(kNan, 1);
    second.restore(first.memory());
    EXPECT_EQ(second.judge(kNan, 1).verdict, Verdict::Stop);
}

// Losses that fall from 10 to 3: in the end 5 is far from those of late, and near the first ones.
TEST(StepGuard, theLastLossesAreTheMeasure) {
    StepGuard falling = guard("stop", "stop");
    for (int i = 0; i < 140; ++i) EXPECT_EQ(falling.judge(10 - 0.05 * i, 1).verdict, Verdict::Update);
    for (int i = 0; i < 100; ++i) EXPECT_EQ(falling.judge(i % 2 ? 3.1 : 2.9, 1).verdict, Verdict::Update);
    EXPECT_EQ(falling.judge(5, 1).verdict, Verdict::Stop);
}

TEST(StepGuard, aMemoryThatIsNoneIsRefused) {
    std::string many = "0";
    for (size_t i = 0; i <= StepGuard::kMostLosses; ++i) many += " 0x1p0";
    for (const std::string& text : {std::string("x"), std::string(""), std::string("-1"), std::string("0 1x"),
                                    std::string("0 nan"), std::string("0 inf"), many}) {
        StepGuard fresh = guard("stop", "warn");
        try {
            fresh.restore(text);
            ADD_FAILURE() << text;
        } catch (const Error& error) {
            EXPECT_STREQ(error.what(),
                         "the checkpoint's losses of earlier steps cannot be read; go on from another checkpoint");
        }
    }
}

}  // namespace
}  // namespace vpp::test
