#include "plan/training_rules.hpp"

#include <gtest/gtest.h>

#include "unit/plan/resolved_plans.hpp"

namespace vpp {
namespace {

using test::Arguments;
using test::error_of;
using test::resolve;

std::string refusal_to_train(const Arguments& arguments) {
    const Error error = error_of([&] { check_trains(resolve(arguments)); });
    EXPECT_EQ(error.kind(), ErrorKind::Plan);
    return error.what();
}

TEST(TrainingRules, APlanOfForwardsTrainsNothing) {
    EXPECT_TRUE(test::holds(refusal_to_train({"pipeline.forward_only=true"}),
                            "--set:1:23: pipeline.forward_only = true: this plan evaluates and trains nothing; use vpp "
                            "eval, or leave the key out"));
    EXPECT_NO_THROW(check_trains(resolve({})));
}

TEST(TrainingRules, AScheduleOfDropsNeedsTheirLength) {
    EXPECT_TRUE(test::holds(refusal_to_train({"lr_schedule.kind=step"}),
                            "--set:1:18: lr_schedule.kind = \"step\" needs lr_schedule.decay_steps, the steps from one "
                            "drop to the next (got 0, so that the rate never drops); set it, or take kind "
                            "\"constant\""));
    EXPECT_NO_THROW(check_trains(resolve({"lr_schedule.kind=step", "lr_schedule.decay_steps=5"})));
    for (const char* kind : {"constant", "linear", "cosine", "inverse_sqrt", "wsd"}) {
        EXPECT_NO_THROW(check_trains(resolve({std::string("lr_schedule.kind=") + kind}))) << kind;
    }
}

TEST(TrainingRules, ATrainingHasALength) {
    const Error error = error_of([] { check_length(resolve({"train.seed=1"})); });
    EXPECT_EQ(error.kind(), ErrorKind::Plan);
    EXPECT_TRUE(
        test::holds(error.what(), "[train] names neither steps nor epochs; write how long to train, as in steps = 200"))
        << error.what();
    EXPECT_NO_THROW(check_length(resolve({"train.steps=5"})));
    EXPECT_NO_THROW(check_length(resolve({"train.epochs=2"})));
}

}  // namespace
}  // namespace vpp
