#include "engine/step_prediction.hpp"

#include <gtest/gtest.h>

#include "schedule/generators.hpp"

namespace vpp {
namespace {

/// GPIPE on one rank: 2 microbatches of F = 3 ms and B = 7 ms.
Program predicted_program() {
    Program program;
    program.training.schedule = make_schedule("GPIPE", 1, 1, 2);
    program.costs.stages = {{3, 7, 3, 4}};
    program.cost_unit = "ms";
    program.has_measured_costs = true;
    return program;
}

std::string said_after_ten_steps(const Program& program, double last_seconds, bool share = false) {
    StepPrediction prediction(program, share);
    std::string said;
    for (int step = 1; step <= 20; ++step) {
        const auto line = prediction.add(step <= kSettlingSteps ? 5.0 : last_seconds);
        EXPECT_EQ(line.has_value(), prediction.predicted_ms() && step == kPredictedSteps) << step;
        if (line) said = *line;
    }
    return said;
}

TEST(StepPrediction, IsHeldAgainstTheStepsOnce) {
    EXPECT_EQ(said_after_ten_steps(predicted_program(), 0.025),
              "measured costs predicted 20.00 ms for the actions of a step; the last 8 steps took 25.00 ms (median), "
              "25 % more");
    EXPECT_TRUE(said_after_ten_steps(predicted_program(), 0.015).ends_with("15.00 ms (median), 25 % less"));
    EXPECT_TRUE(said_after_ten_steps(predicted_program(), 0.025, true).ends_with("25 % more; ranks share cores here"));
    EXPECT_NE(said_after_ten_steps(predicted_program(), 0.02001).find("as predicted"), std::string::npos);
}

TEST(StepPrediction, EstimatesAndOtherUnitsPredictNothing) {
    Program program = predicted_program();
    program.has_measured_costs = false;
    EXPECT_EQ(said_after_ten_steps(program, 0.02), "");
    program = predicted_program();
    program.cost_unit = "x F of a mean rank";
    EXPECT_EQ(said_after_ten_steps(program, 0.02), "");
}

}  // namespace
}  // namespace vpp
