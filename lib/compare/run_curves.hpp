#pragma once
// The numbers of runs as curves over steps, by the names that they have in metrics.csv and TensorBoard: "train/loss".
#include <string>
#include <vector>

#include "compare/comparison.hpp"
#include "compare/plot.hpp"

namespace vpp {

/// The names that `run_curve` takes: numbers of steps, then those of evaluations.
std::vector<std::string> curve_names();

/// A number of a run; steps that do not tell it are left out.
/// Requires: one of curve_names().
Curve run_curve(const RecordedRun& run, const std::string& name);

/// That number of all runs. Long curves are moving means (report/thinning.hpp), which the note says.
Plot plot_runs(const Comparison& comparison, const std::string& name);

/// Where curves have holes: "B: 3 values are not finite, the first at step 17", a line each.
std::vector<std::string> hole_notes(const Comparison& comparison, const std::string& name);

}  // namespace vpp
