#pragma once
// The plan's prediction beside what came true: the step that the simulator makes of measured costs against the steps of
// a run.
#include <optional>
#include <string>
#include <vector>

#include "program/program.hpp"

namespace vpp {

/// So many steps of a run are looked at; the first ones make what stays, and are left out.
inline constexpr int kPredictedSteps = 10, kSettlingSteps = 2;

class StepPrediction {
  public:
    /// Predicts where the program's costs were measured, in milliseconds. Ranks that share cores take longer.
    StepPrediction(const Program& program, bool ranks_share_cores);

    /// A step of this run: what the actions of the slowest rank took.
    /// Gives: after the last step that is looked at, once, a line that holds one against the other.
    std::optional<std::string> add(double actions_seconds);

    std::optional<double> predicted_ms() const { return predicted_ms_; }

  private:
    std::optional<double> predicted_ms_;
    bool ranks_share_cores_;
    int num_steps_ = 0;
    std::vector<double> measured_ms_;
};

}  // namespace vpp
