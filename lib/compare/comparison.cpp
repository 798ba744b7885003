#include "compare/comparison.hpp"

#include <cmath>
#include <utility>

namespace vpp {

namespace {

std::string state_of(const RecordedRun& run, const RunSummary& summary) {
    if (run.end && run.end->is_failure()) return run.end->state();
    if (run.steps.empty()) return "no step";
    if (!std::isfinite(summary.last_loss.value_or(0))) return "not finite";
    if (summary.is_finished) return "finished";
    return run.end && run.end->exit_code != 0 ? run.end->state() : "unfinished";
}

}  // namespace

std::string run_mark(size_t run) {
    constexpr size_t kLetters = 26;
    std::string mark;
    for (size_t left = run + 1; left > 0; left = (left - 1) / kLetters) {
        mark.insert(mark.begin(), static_cast<char>('A' + (left - 1) % kLetters));
    }
    return mark;
}

Comparison compare_runs(std::vector<RecordedRun> runs) {
    Comparison comparison;
    std::vector<Settings> settings;
    for (const RecordedRun& run : runs) settings.push_back(run.settings);
    comparison.differences = differences(settings);
    for (RecordedRun& run : runs) {
        const RunSummary summary = summary_of(run);
        const std::string state = state_of(run, summary);
        comparison.runs.push_back({run_mark(comparison.runs.size()), std::move(run), summary, state});
    }
    return comparison;
}

}  // namespace vpp
