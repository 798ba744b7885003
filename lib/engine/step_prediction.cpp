#include "engine/step_prediction.hpp"

#include <algorithm>
#include <cmath>

#include "base/median.hpp"
#include "base/units.hpp"
#include "schedule/simulator.hpp"

namespace vpp {

namespace {

std::string beside(double measured, double predicted) {
    const double change = 100 * (measured / predicted - 1);
    if (std::abs(change) < 0.5) return "as predicted";
    return fixed_text(std::abs(change), 0) + (change > 0 ? " % more" : " % less");
}

}  // namespace

StepPrediction::StepPrediction(const Program& program, bool ranks_share_cores) : ranks_share_cores_(ranks_share_cores) {
    if (!program.has_measured_costs || program.cost_unit != "ms") return;
    const double predicted = program.costs.units(simulate(program.training.schedule, program.costs).makespan);
    if (predicted > 0) predicted_ms_ = predicted;
}

std::optional<std::string> StepPrediction::add(double actions_seconds) {
    if (!predicted_ms_ || num_steps_ == kPredictedSteps) return std::nullopt;
    if (++num_steps_ > kSettlingSteps) measured_ms_.push_back(actions_seconds * 1e3);
    if (num_steps_ < kPredictedSteps) return std::nullopt;
    const double usual_ms = median(measured_ms_);
    return "measured costs predicted " + fixed_text(*predicted_ms_, 2) + " ms for the actions of a step; the last " +
           std::to_string(measured_ms_.size()) + " steps took " + fixed_text(usual_ms, 2) + " ms (median), " +
           beside(usual_ms, *predicted_ms_) + (ranks_share_cores_ ? "; ranks share cores here" : "");
}

}  // namespace vpp
