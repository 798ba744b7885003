#pragma once
// Recorded runs for the tests of comparisons, with losses that a reader can follow.
#include <string>
#include <vector>

#include "report/run_record.hpp"

namespace vpp::test {

/// A run with these losses at the steps 1, 2, ..., of which the last is saved, and a learning rate in its plan.
inline RecordedRun run_with(const std::string& name, const std::vector<double>& losses, const std::string& lr = "0.1") {
    RecordedRun run;
    run.name = name;
    run.plan_text = "[optimizer]\nlr = " + lr + "\n[run]\ndir = \"" + name + "\"\n";
    run.settings = settings_from_plan(run.plan_text);
    for (const double loss : losses) {
        StepEvent step;
        step.step = static_cast<int64_t>(run.steps.size()) + 1;
        step.total_steps = static_cast<int64_t>(losses.size());
        step.loss = loss;
        step.lr = 0.1;
        step.samples_per_second = 1000;
        step.step_ms = 32;
        step.flops = 6.4e7;
        step.bubble_mean = 0.25;
        step.bubble_idle = 0.24;
        step.bubble_predicted = 0.2;
        step.memory_bytes = int64_t{300} << 20;
        run.steps.push_back(step);
    }
    if (!losses.empty()) run.saves = {{static_cast<int64_t>(losses.size()), "", 4096, 0.5, 0.25}};
    return run;
}

/// first / n at step n.
inline std::vector<double> falling(double first, int num_steps) {
    std::vector<double> losses;
    for (int step = 1; step <= num_steps; ++step) losses.push_back(first / step);
    return losses;
}

}  // namespace vpp::test
