#include "optim/lr.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <iterator>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "plan/lr_rules.hpp"

namespace vpp {
namespace {

constexpr double kBase = 0.8;

LrSchedulePlan lr_plan(const std::string& kind, int64_t warmup = 4, double min_lr = 0.08, int64_t decay = 0) {
    LrSchedulePlan plan;
    plan.kind = kind;
    plan.warmup_steps = warmup;
    plan.min_lr = min_lr;
    plan.decay_steps = decay;
    return plan;
}

const char* const kKinds[] = {"constant", "linear", "cosine", "inverse_sqrt", "wsd", "step"};

TEST(LearningRate, KindsAreThoseOfTheTable) {
    EXPECT_EQ(lr_schedule_kinds(), (std::vector<std::string>{std::begin(kKinds), std::end(kKinds)}));
}

TEST(LearningRate, TheRulesOfAPlanHaveARowForEachKind) {
    EXPECT_EQ(lr_schedule_kinds(), kinds_of_lr_rules()) << "a kind has a row in plan/lr_rules.cpp too";
}

TEST(LearningRate, EveryKindWarmsUpTheSameWay) {
    for (const char* kind : kKinds) {
        SCOPED_TRACE(kind);
        EXPECT_EQ(learning_rate(lr_plan(kind), kBase, 0, 100), kBase * 1.0 / 4.0);
        EXPECT_EQ(learning_rate(lr_plan(kind), kBase, 2, 100), kBase * 3.0 / 4.0);
        EXPECT_EQ(learning_rate(lr_plan(kind), kBase, 3, 100), kBase);
    }
}

TEST(LearningRate, EveryKindStartsAtTheBaseWithoutWarmUp) {
    for (const char* kind : kKinds) {
        EXPECT_EQ(learning_rate(lr_plan(kind, 0), kBase, 0, 100), kBase) << kind;
    }
}

TEST(LearningRate, NoKindRisesAfterTheWarmUpOrLeavesItsBounds) {
    for (const char* kind : kKinds) {
        for (const int64_t decay : {int64_t{0}, int64_t{1}, int64_t{10}, int64_t{1000}}) {
            SCOPED_TRACE(std::string(kind) + " " + std::to_string(decay));
            double last = kBase;
            for (int64_t step = 4; step < 200; ++step) {  // past the end of 100 steps, as a longer resume would be
                const double rate = learning_rate(lr_plan(kind, 4, 0.08, decay), kBase, step, 100);
                ASSERT_LE(rate, last) << step;
                ASSERT_GE(rate, 0.08) << step;
                last = rate;
            }
        }
    }
}

TEST(LearningRate, Constant) {
    EXPECT_EQ(learning_rate(lr_plan("constant"), kBase, 99, 100), kBase);
}

TEST(LearningRate, Linear) {
    const LrSchedulePlan plan = lr_plan("linear");  // 96 steps from 0.8 to 0.08
    EXPECT_EQ(learning_rate(plan, kBase, 4, 100), kBase);
    EXPECT_DOUBLE_EQ(learning_rate(plan, kBase, 52, 100), 0.44);
    EXPECT_DOUBLE_EQ(learning_rate(plan, kBase, 99, 100), 0.08 + 0.72 / 96);
    EXPECT_EQ(learning_rate(plan, kBase, 100, 100), 0.08);
    EXPECT_EQ(learning_rate(lr_plan("linear", 4, 0.08, 10), kBase, 14, 100), 0.08);
    EXPECT_DOUBLE_EQ(learning_rate(lr_plan("linear", 4, 0.08, 10), kBase, 9, 100), 0.44);
}

TEST(LearningRate, Cosine) {
    const LrSchedulePlan plan = lr_plan("cosine");
    EXPECT_EQ(learning_rate(plan, kBase, 4, 100), kBase);
    EXPECT_DOUBLE_EQ(learning_rate(plan, kBase, 52, 100), 0.44);
    EXPECT_DOUBLE_EQ(learning_rate(plan, kBase, 28, 100), 0.08 + 0.72 * 0.5 * (1 + std::sqrt(0.5)));
    EXPECT_EQ(learning_rate(plan, kBase, 100, 100), 0.08);
    EXPECT_DOUBLE_EQ(learning_rate(lr_plan("cosine", 4, 0.08, 10), kBase, 9, 100), 0.44);
}

TEST(LearningRate, InverseSqrt) {
    EXPECT_EQ(learning_rate(lr_plan("inverse_sqrt"), kBase, 15, 100), 0.4);  // sqrt(4 / 16)
    EXPECT_EQ(learning_rate(lr_plan("inverse_sqrt", 0, 0), kBase, 3, 100), 0.4);
    EXPECT_EQ(learning_rate(lr_plan("inverse_sqrt"), kBase, 1'000'000, 100), 0.08);
}

TEST(LearningRate, WarmupStableDecay) {
    const LrSchedulePlan plan = lr_plan("wsd", 4, 0.08, 20);
    EXPECT_EQ(learning_rate(plan, kBase, 79, 100), kBase);
    EXPECT_EQ(learning_rate(plan, kBase, 80, 100), kBase);
    EXPECT_DOUBLE_EQ(learning_rate(plan, kBase, 90, 100), 0.44);
    EXPECT_EQ(learning_rate(plan, kBase, 100, 100), 0.08);
    // A tenth of the steps by default, rounded up.
    EXPECT_EQ(learning_rate(lr_plan("wsd"), kBase, 90, 100), kBase);
    EXPECT_LT(learning_rate(lr_plan("wsd"), kBase, 91, 100), kBase);
    EXPECT_LT(learning_rate(lr_plan("wsd"), kBase, 91, 101), kBase);
    EXPECT_EQ(learning_rate(lr_plan("wsd"), kBase, 90, 101), kBase);
    // A decay longer than what the warm-up leaves begins right after it.
    EXPECT_EQ(learning_rate(lr_plan("wsd", 4, 0.08, 1000), kBase, 4, 100), kBase);
    EXPECT_DOUBLE_EQ(learning_rate(lr_plan("wsd", 4, 0.08, 1000), kBase, 52, 100), 0.44);
}

TEST(LearningRate, Step) {
    LrSchedulePlan plan = lr_plan("step", 4, 0, 10);
    plan.gamma = 0.5;
    EXPECT_EQ(learning_rate(plan, kBase, 13, 100), kBase);
    EXPECT_EQ(learning_rate(plan, kBase, 14, 100), kBase * 0.5);
    EXPECT_EQ(learning_rate(plan, kBase, 34, 100), kBase * 0.125);
    plan.min_lr = 0.3;
    EXPECT_EQ(learning_rate(plan, kBase, 34, 100), 0.3);
    plan.decay_steps = 0;  // to the end: never drops before it
    EXPECT_EQ(learning_rate(plan, kBase, 99, 100), kBase);
    EXPECT_EQ(learning_rate(plan, kBase, 100, 100), kBase * 0.5);
}

TEST(LearningRate, ARateOfZeroStaysZero) {
    for (const std::string& kind : lr_schedule_kinds()) {
        for (const int64_t step : {0, 4, 50, 99, 200}) EXPECT_EQ(learning_rate(lr_plan(kind), 0, step, 100), 0) << kind;
    }
}

TEST(LearningRate, WarmRestartsBeginTheDecayAnew) {
    for (const char* kind : {"linear", "cosine", "step"}) {
        SCOPED_TRACE(kind);
        const LrSchedulePlan once = lr_plan(kind, 4, 0.08, 0);
        LrSchedulePlan plan = once;
        plan.restart_every = 10;
        EXPECT_EQ(learning_rate(plan, kBase, 2, 100), kBase * 3.0 / 4.0) << "the warm-up comes once";
        for (int64_t step = 0; step < 10; ++step) {
            const double first = learning_rate(once, kBase, 4 + step, 14);
            for (const int64_t start : {4, 14, 94, 104}) {
                EXPECT_EQ(learning_rate(plan, kBase, start + step, 100), first) << start << ' ' << step;
            }
        }
        plan.decay_steps = 5;
        EXPECT_EQ(learning_rate(plan, kBase, 14 + 7, 100), learning_rate(lr_plan(kind, 4, 0.08, 5), kBase, 4 + 7, 100));
    }
}

// What torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(T_0=8, eta_min=0.08) gives from a rate of 0.8.
TEST(LearningRate, CosineWithRestartsIsThatOfTorch) {
    LrSchedulePlan plan = lr_plan("cosine", 0);
    plan.restart_every = 8;
    const double rates[] = {0.8,
                            0.7725966317040632,
                            0.6945584412271572,
                            0.5777660356514324,
                            0.44000000000000006,
                            0.30223396434856775,
                            0.1854415587728429,
                            0.10740336829593677,
                            0.8,
                            0.7725966317040632,
                            0.6945584412271572};
    for (size_t step = 0; step < std::size(rates); ++step) {
        EXPECT_DOUBLE_EQ(learning_rate(plan, kBase, static_cast<int64_t>(step), 100), rates[step]) << step;
    }
}

TEST(LearningRate, AWarmUpLongerThanTheTrainingIsAllThereIs) {
    for (const char* kind : kKinds) {
        EXPECT_EQ(learning_rate(lr_plan(kind, 200), kBase, 49, 100), kBase * 50.0 / 200.0) << kind;
        const double after = learning_rate(lr_plan(kind, 200), kBase, 200, 100);
        EXPECT_TRUE(after >= 0.08 && after <= kBase) << kind << after;
    }
}

TEST(LearningRate, WrongCallsAreTold) {
    EXPECT_THROW(learning_rate(lr_plan("constant"), kBase, -1, 100), Error);
    try {
        learning_rate(lr_plan("cosin"), kBase, 0, 100);
        FAIL() << "an unknown kind was taken";
    } catch (const Error& e) {
        EXPECT_EQ(exit_code(e.kind()), 78);
        const std::string text = e.what();
        EXPECT_TRUE(text.starts_with("lr_schedule.kind is unknown (got 'cosin', expected one of constant, ")) << text;
        EXPECT_TRUE(text.ends_with("); did you mean 'cosine'?")) << text;
    }
}

}  // namespace
}  // namespace vpp
