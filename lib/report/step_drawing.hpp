#pragma once
// A step as inline SVG: a row a rank, time to the right, a box an action.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "report/run_record.hpp"
#include "report/settings.hpp"

namespace vpp {

/// What is drawn, and what is to be said of it.
struct StepPicture {
    std::vector<TimedAction> actions;
    std::string caption;       ///< how the times came about
    bool is_measured = false;  ///< else the times are relative
};

/// The measured step of a run, else the one that its plan's schedule has with equally dear stages (F 1, B 2, I 1, W 1).
/// Nothing where the plan does not name a schedule that can be made without the model; `why` then says so.
std::optional<StepPicture> picture_of(const RecordedRun& run, const Settings& settings, std::string& why);

/// The <svg> element; actions that are neither F, B, I nor W are drawn as thin lines. More than 20,000 actions are
/// drawn for the first ranks only, and a line says so. Requires: at least one action.
std::string draw_step(const StepPicture& picture);

/// Of each rank with an action the share of the step in which it computes, 0 to 1. The step lasts until the last action
/// ends.
std::map<int, double> busy_shares(const std::vector<TimedAction>& actions);

}  // namespace vpp
