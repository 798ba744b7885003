#include "report/run_summary.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/median.hpp"
#include "base/units.hpp"
#include "report/step_text.hpp"

namespace vpp {

namespace {

std::optional<double> median_of_finite(std::vector<double> values) {
    std::erase_if(values, [](double value) { return !std::isfinite(value); });
    return values.empty() ? std::nullopt : std::optional(median(values));
}

std::optional<double> mean(const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return values.empty() ? std::nullopt : std::optional(sum / static_cast<double>(values.size()));
}

std::vector<WorstRank> worst_ranks_of(const std::vector<StepEvent>& steps) {
    std::map<int, std::vector<double>> waits;
    size_t num_known = 0;
    for (const StepEvent& step : steps) {
        if (!step.bubble_worst || !std::isfinite(*step.bubble_worst) || step.worst_rank < 0) continue;
        waits[step.worst_rank].push_back(*step.bubble_worst);
        ++num_known;
    }
    std::vector<WorstRank> ranks;
    for (const auto& [rank, shares] : waits) {
        ranks.push_back({rank, static_cast<double>(shares.size()) / static_cast<double>(num_known), *mean(shares)});
    }
    std::stable_sort(ranks.begin(), ranks.end(), [](const WorstRank& one, const WorstRank& other) {
        return one.share_of_steps > other.share_of_steps;
    });
    return ranks;
}

/// Keeps the smallest finite value and its step.
void take_smaller(std::optional<double>& best, int64_t& best_step, std::optional<double> value, int64_t step) {
    if (!value || !std::isfinite(*value) || *value >= best.value_or(HUGE_VAL)) return;
    best = value;
    best_step = step;
}

void take_losses(RunSummary& summary, const std::vector<StepEvent>& steps) {
    for (const StepEvent& step : steps) {
        take_smaller(summary.best_loss, summary.best_loss_step, step.loss, step.step);
    }
}

void take_evaluations(RunSummary& summary, const std::vector<EvalEvent>& evaluations) {
    for (const EvalEvent& event : evaluations) {
        take_smaller(summary.best_evaluation, summary.best_evaluation_step, event.loss, event.step);
        take_smaller(summary.best_perplexity, summary.best_perplexity_step, event.perplexity, event.step);
        if (!event.accuracy || !(*event.accuracy > summary.best_accuracy.value_or(-1))) continue;
        summary.best_accuracy = event.accuracy;
        summary.best_accuracy_step = event.step;
    }
}

}  // namespace

RunSummary summary_of(const RecordedRun& run) {
    RunSummary summary;
    std::vector<double> tokens, samples, flops, waits, bubbles, predictions;
    const auto add = [](std::vector<double>& values, const std::optional<double>& value) {
        if (value && std::isfinite(*value)) values.push_back(*value);
    };
    for (const StepEvent& step : run.steps) {
        samples.push_back(step.samples_per_second);
        if (step.tokens_per_second > 0) tokens.push_back(step.tokens_per_second);
        if (step.flops > 0) flops.push_back(step.flops_per_second());
        add(waits, step.bubble_mean);
        add(bubbles, step.bubble_idle);
        add(predictions, step.bubble_predicted);
        summary.memory_bytes = std::max(summary.memory_bytes, step.memory_bytes);
        if (std::isfinite(step.step_ms)) summary.seconds += step.step_ms / 1e3;
        summary.num_skipped += step.skipped;
    }
    if (!run.steps.empty()) {
        summary.last_step = run.steps.back().step;
        summary.total_steps = run.steps.back().total_steps;
        summary.last_loss = run.steps.back().loss;
        const bool is_saved = !run.saves.empty() && run.saves.back().step == summary.last_step;
        const bool is_done = run.end && run.end->exit_code == 0;  // the line of its save may have had no room
        summary.is_finished = (is_saved || is_done) && summary.last_step == summary.total_steps;
    }
    take_losses(summary, run.steps);
    summary.has_tokens = !tokens.empty();
    summary.rate = median_of_finite(summary.has_tokens ? tokens : samples);
    summary.flops_rate = median_of_finite(flops);
    summary.waiting = mean(waits);
    summary.bubble = mean(bubbles);
    summary.predicted_bubble = mean(predictions);
    summary.worst_ranks = worst_ranks_of(run.steps);
    take_evaluations(summary, run.evaluations);
    return summary;
}

std::vector<SummaryFigure> summary_figures(const RunSummary& summary) {
    const auto text = [](const std::optional<double>& value, auto&& write) { return value ? write(*value) : ""; };
    const std::string skipped = summary.num_skipped > 0 ? ", " + std::to_string(summary.num_skipped) + " skipped" : "";
    const auto accuracy = [](double share) { return fixed_text(100 * share, 2) + " %"; };
    const std::string unit = summary.has_tokens ? " tokens/s" : " samples/s";
    return {
        {"steps", std::to_string(summary.last_step) + "/" + std::to_string(summary.total_steps), skipped, ""},
        {"last loss", text(summary.last_loss, loss_text), "", ""},
        {"best loss", text(summary.best_loss, loss_text), ", at step " + std::to_string(summary.best_loss_step), ""},
        {"best validation loss", text(summary.best_evaluation, loss_text),
         ", after step " + std::to_string(summary.best_evaluation_step), "validation"},
        {"best validation accuracy", text(summary.best_accuracy, accuracy),
         ", after step " + std::to_string(summary.best_accuracy_step), "accuracy", true},
        {"best validation perplexity", text(summary.best_perplexity, loss_text),
         ", after step " + std::to_string(summary.best_perplexity_step), "perplexity", true},
        {"median rate", text(summary.rate, [&](double rate) { return count_text(rate) + unit; }), "", "rate"},
        {"useful work", text(summary.flops_rate, flops_rate_text), "", "work"},
        {"waiting, mean of ranks", text(summary.waiting, whole_percent_text), "", "waiting"},
        {"bubble", text(summary.bubble, whole_percent_text), "", ""},
        {"bubble, simulated", text(summary.predicted_bubble, whole_percent_text), "", "simulated"},
        {"peak memory of a rank", summary.memory_bytes > 0 ? bytes_text(summary.memory_bytes) : "", "", "memory"},
        {"time in steps", duration_text(summary.seconds), "", "time"},
    };
}

std::vector<std::vector<SummaryFigure>> figures_of_runs(const std::vector<RunSummary>& summaries) {
    std::vector<std::vector<SummaryFigure>> all;
    for (const RunSummary& summary : summaries) all.push_back(summary_figures(summary));
    for (size_t i = all.empty() ? 0 : all.front().size(); i-- > 0;) {
        const auto is_needed = [i](const auto& figures) {
            return !figures[i].is_asked_for || !figures[i].value.empty();
        };
        if (std::ranges::any_of(all, is_needed)) continue;
        for (auto& figures : all) figures.erase(figures.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return all;
}

}  // namespace vpp
