#include "report/console.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/error.hpp"
#include "base/units.hpp"
#include "report/pipeline_text.hpp"

namespace vpp {

namespace {

constexpr int kStepWidth = 5;

std::string right(const std::string& text, size_t width) {
    return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

std::string left(std::string text, size_t width) {
    if (text.size() < width) text.append(width - text.size(), ' ');
    return text;
}

std::string formatted(const char* format, double value) {
    // printf knows a negative "nan", which says nothing more.
    if (std::isnan(value)) return "nan";
    char text[64];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

/// Four decimals while they mean something: "3.1416", "1.2e+07".
std::string loss_text(double loss) {
    return formatted(std::abs(loss) < 1e5 ? "%.4f" : "%.4g", loss);
}

std::string step_text(int64_t step) {
    return right(std::to_string(step), kStepWidth);
}

std::string rate_text(const StepEvent& event) {
    const bool tokens = event.tokens_per_second > 0;
    const double rate = tokens ? event.tokens_per_second : event.samples_per_second;
    return right(std::isfinite(rate) ? count_text(rate) : "-", 7) + (tokens ? " tokens/s" : " samples/s");
}

std::string percent_text(double share) {
    return formatted("%.0f", 100 * share) + " %";
}

std::string bubble_text(const StepEvent& event) {
    if (!event.bubble_mean) return "-";
    const std::string mean = right(percent_text(*event.bubble_mean), 5);
    if (!event.bubble_worst) return mean;
    return mean + " (worst " + percent_text(*event.bubble_worst) + " rank " + std::to_string(event.worst_rank) + ")";
}

}  // namespace

std::string step_line(const StepEvent& event) {
    const std::string total = std::to_string(event.total_steps);
    const std::string done = right(std::to_string(event.step), std::max<size_t>(kStepWidth, total.size()));
    std::string line = "step " + done + '/' + total;
    line += "  loss " + right(loss_text(event.loss), 7);
    if (event.skipped) line += " (skipped)";
    line += "  grad norm " + right(formatted("%.3g", event.grad_norm), 8);
    if (event.loss_scale) line += "  scale " + formatted("%.6g", *event.loss_scale);
    line += "  lr " + formatted("%.1e", event.lr);
    line += "  " + rate_text(event);
    line += "  " + right(formatted(event.step_ms < 10 ? "%.1f" : "%.0f", event.step_ms), 5) + " ms";
    line += "  bubble " + left(bubble_text(event), event.bubble_worst ? 27 : 5);
    line += "  mem " + right(bytes_text(event.memory_bytes), 9);
    line += "  act " + right(bytes_text(event.activation_bytes), 9);
    line += "  ETA " + duration_text(event.eta_seconds);
    return line;
}

std::string evaluation_line(const EvalEvent& event) {
    return "eval " + step_text(event.step) + "  loss " + right(loss_text(event.loss), 7) + "  over " +
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
    const bool is_due = every_ > 0 && event.step % every_ == 0;
    if (is_first_ || is_due || event.step == event.total_steps) out_ << step_line(event) << std::endl;
    is_first_ = false;
}

void ConsoleReporter::evaluation(const EvalEvent& event) {
    out_ << evaluation_line(event) << std::endl;
}

void ConsoleReporter::memory(const MemoryEvent& event) {
    out_ << memory_line(event) << std::endl;
}

void ConsoleReporter::pipeline(const PipelineEvent& event) {
    out_ << pipeline_table(event) << std::flush;
}

void ConsoleReporter::saved(const SaveEvent& event) {
    out_ << saved_line(event) << std::endl;
}

}  // namespace vpp
