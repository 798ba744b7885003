#include "report/console.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/units.hpp"
#include "report/columns.hpp"
#include "report/live_line.hpp"
#include "report/pipeline_text.hpp"
#include "report/step_text.hpp"

namespace vpp {

namespace {

constexpr int kStepWidth = 5;

std::string step_text(int64_t step) {
    return right_aligned(std::to_string(step), kStepWidth);
}

std::string bubble_text(const StepEvent& event) {
    if (!event.bubble_mean) return "-";
    const std::string mean = right_aligned(whole_percent_text(*event.bubble_mean), 5);
    if (!event.bubble_worst) return mean;
    return mean + " (worst " + whole_percent_text(*event.bubble_worst) + " rank " + std::to_string(event.worst_rank) +
           ")";
}

}  // namespace

std::string step_line(const StepEvent& event, size_t width) {
    const std::string total = std::to_string(event.total_steps);
    const std::string done = right_aligned(std::to_string(event.step), std::max<size_t>(kStepWidth, total.size()));
    const std::string loss = "loss " + right_aligned(loss_text(event.loss), 7) + (event.skipped ? " (skipped)" : "");
    std::vector<Column> columns{
        {"step " + done + '/' + total, 12},
        {loss, 11},
        {"grad norm " + right_aligned(formatted("%.3g", event.grad_norm), 8), 7},
        {event.loss_scale ? "scale " + formatted("%.6g", *event.loss_scale) : "", 6},
        {"lr " + formatted("%.1e", event.lr), 8},
        {rate_text(event), 9},
        {flops_text(event), 4},
        {right_aligned(formatted(event.step_ms < 10 ? "%.1f" : "%.0f", event.step_ms), 5) + " ms", 5},
        {"bubble " + left_aligned(bubble_text(event), event.bubble_worst ? 27 : 5), 3},
        {"mem " + right_aligned(bytes_text(event.memory_bytes), 9), 2},
        {"act " + right_aligned(bytes_text(event.activation_bytes), 9), 1},
        {"ETA " + duration_text(event.eta_seconds), 10},
    };
    std::erase_if(columns, [](const Column& column) { return column.text.empty(); });
    return fitted_line(std::move(columns), width);
}

std::string evaluation_line(const EvalEvent& event) {
    std::string metrics;
    if (event.accuracy) metrics += "  accuracy " + formatted("%.2f", 100 * *event.accuracy) + "%";
    if (event.perplexity) metrics += "  perplexity " + formatted("%.5g", *event.perplexity);
    return "eval " + step_text(event.step) + "  loss " + right_aligned(loss_text(event.loss), 7) + metrics + "  over " +
           std::to_string(event.samples) + " samples in " + formatted("%.1f", event.seconds) + " s";
}

std::string saved_line(const SaveEvent& event) {
    return "save " + step_text(event.step) + "  " + printable(event.folder) + "  " + bytes_text(event.size_bytes) +
           " in " + formatted("%.1f", event.seconds) + " s, training paused " +
           formatted(event.pause_seconds < 0.01 ? "%.1f" : "%.0f", 1e3 * event.pause_seconds) + " ms";
}

/// Of the rank that holds most.
std::string memory_line(const MemoryEvent& event) {
    const auto total = [](const MemoryEvent::Rank& rank) { return rank.state_bytes + rank.activation_bytes; };
    const auto fullest =
        std::max_element(event.ranks.begin(), event.ranks.end(),
                         [&](const auto& one, const auto& other) { return total(one) < total(other); });
    return "mem  " + step_text(event.step) + "  rank " + std::to_string(fullest - event.ranks.begin()) +
           " holds most: " + bytes_text(fullest->state_bytes) + " weights and state, " +
           bytes_text(fullest->activation_bytes) + " activations and messages (simulated " +
           bytes_text(fullest->least_simulated_bytes) + " to " + bytes_text(fullest->most_simulated_bytes) + ")";
}

void ConsoleReporter::step(const StepEvent& event) {
    const auto width = static_cast<size_t>(std::max(1, options_.width()));
    const bool is_due = options_.every > 0 && event.step % options_.every == 0;
    if (is_first_ || is_due || event.step == event.total_steps) {
        screen_.print(step_line(event, screen_.is_live() ? width : 0));
    }
    is_first_ = false;
    screen_.show(live_line(event, width, options_.coloured));
}

void ConsoleReporter::evaluation(const EvalEvent& event) {
    screen_.print(evaluation_line(event));
}

void ConsoleReporter::memory(const MemoryEvent& event) {
    screen_.print(memory_line(event));
}

void ConsoleReporter::pipeline(const PipelineEvent& event) {
    std::string table = pipeline_table(event);
    table.pop_back();  // the screen ends lines itself
    screen_.print(table);
}

void ConsoleReporter::saved(const SaveEvent& event) {
    screen_.print(saved_line(event));
}

}  // namespace vpp
