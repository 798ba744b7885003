#include "report/pipeline_text.hpp"

#include <cstdio>

#include "base/units.hpp"

namespace vpp {

namespace {

std::string stage_row(const std::string& stage, const std::string& pp_rank, const std::string& forward,
                      const std::string& backward, const std::string& transfer, const std::string& wait) {
    char text[160];
    std::snprintf(text, sizeof text, "%5s %8s %10s %10s %10s %10s\n", stage.c_str(), pp_rank.c_str(), forward.c_str(),
                  backward.c_str(), transfer.c_str(), wait.c_str());
    return text;
}

std::string percent(double share) {
    return fixed_text(100 * share, 1) + " %";
}

}  // namespace

std::string pipeline_table(const PipelineEvent& event) {
    std::string text = "pipeline of " + event.schedule + ", milliseconds of a step, the mean of the steps " +
                       std::to_string(event.first_step) + " to " + std::to_string(event.step) + "\n";
    text += stage_row("stage", "PP rank", "forward", "backward", "transfer", "wait");
    for (size_t i = 0; i < event.stages.size(); ++i) {
        const StageTimesEvent& stage = event.stages[i];
        text +=
            stage_row(std::to_string(i), std::to_string(stage.rank), fixed_text(stage.forward_ms, 2),
                      fixed_text(stage.backward_ms, 2), fixed_text(stage.transfer_ms, 2), fixed_text(stage.wait_ms, 2));
    }
    text += "actions " + fixed_text(event.actions_ms, 2) + " ms a step, simulated with these times " +
            fixed_text(event.predicted_ms, 2) + " ms\n";
    if (!event.bubble_idle || !event.bubble_predicted) return text + "bubble - (more ranks than cores)\n";
    return text + "bubble " + percent(*event.bubble_idle) + ", simulated " + percent(*event.bubble_predicted) +
           "; messages and uneven actions make the difference\n";
}

}  // namespace vpp
