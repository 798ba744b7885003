#include "report/json_lines.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/json_text.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson event_number(double value) {
    if (std::isfinite(value)) return value;
    if (std::isnan(value)) return "nan";
    return value > 0 ? "inf" : "-inf";
}

/// Null for what is not known.
OrderedJson number_if(bool is_known, double value) {
    return is_known ? event_number(value) : OrderedJson(nullptr);
}

OrderedJson number_if(const std::optional<double>& value) {
    return number_if(value.has_value(), value.value_or(0));
}

OrderedJson stages_json(const std::vector<StageTimesEvent>& stages) {
    OrderedJson values = OrderedJson::array();
    for (const StageTimesEvent& stage : stages) {
        values.push_back({{"rank", stage.rank},
                          {"forward_ms", event_number(stage.forward_ms)},
                          {"backward_ms", event_number(stage.backward_ms)},
                          {"transfer_ms", event_number(stage.transfer_ms)},
                          {"wait_ms", event_number(stage.wait_ms)}});
    }
    return values;
}

/// The step of a line, or nothing for a line that no reporter wrote whole.
std::optional<uint64_t> step_of_json(std::string_view line) {
    if (line.size() > kLongestLine) return std::nullopt;
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object()) return std::nullopt;
    const auto step = json.find("step");
    if (step == json.end() || !step->is_number_unsigned()) return std::nullopt;
    return step->get<uint64_t>();
}

}  // namespace

std::string to_json_line(const StepEvent& event) {
    OrderedJson losses = OrderedJson::array();
    for (const double loss : event.microbatch_losses) losses.push_back(event_number(loss));
    return json_text(
        OrderedJson{{"event", "step"},
                    {"step", event.step},
                    {"total_steps", event.total_steps},
                    {"loss", event_number(event.loss)},
                    {"microbatch_losses", std::move(losses)},
                    {"grad_norm", event_number(event.grad_norm)},
                    {"clipped", event.clipped},
                    {"skipped", event.skipped},
                    {"loss_scale", number_if(event.loss_scale.has_value(), event.loss_scale.value_or(0))},
                    {"lr", event_number(event.lr)},
                    {"samples_per_second", event_number(event.samples_per_second)},
                    {"tokens_per_second", number_if(event.tokens_per_second > 0, event.tokens_per_second)},
                    {"step_ms", event_number(event.step_ms)},
                    {"reduce_ms", event_number(event.reduce_ms)},
                    {"flops_per_second", number_if(event.flops > 0, event.flops_per_second())},
                    {"bubble_mean", number_if(event.bubble_mean.has_value(), event.bubble_mean.value_or(0))},
                    {"bubble_worst", number_if(event.bubble_worst.has_value(), event.bubble_worst.value_or(0))},
                    {"worst_rank", event.bubble_worst ? OrderedJson(event.worst_rank) : OrderedJson(nullptr)},
                    {"stages", stages_json(event.stages)},
                    {"bubble_idle", number_if(event.bubble_idle)},
                    {"bubble_predicted", number_if(event.bubble_predicted)},
                    {"memory_bytes", event.memory_bytes},
                    {"activation_bytes", event.activation_bytes},
                    {"eta_seconds", number_if(event.eta_seconds >= 0, event.eta_seconds)}});
}

std::string to_json_line(const EvalEvent& event) {
    OrderedJson line = {{"event", "eval"},
                        {"step", event.step},
                        {"loss", event_number(event.loss)},
                        {"samples", event.samples},
                        {"seconds", event_number(event.seconds)}};
    if (event.accuracy) line["accuracy"] = event_number(*event.accuracy);
    if (event.perplexity) line["perplexity"] = event_number(*event.perplexity);
    return json_text(line);
}

std::string to_json_line(const SaveEvent& event) {
    return json_text(OrderedJson{{"event", "save"},
                                 {"step", event.step},
                                 {"folder", event.folder},
                                 {"size_bytes", event.size_bytes},
                                 {"seconds", event_number(event.seconds)},
                                 {"pause_seconds", event_number(event.pause_seconds)}});
}

std::string to_json_line(const MemoryEvent& event) {
    OrderedJson ranks = OrderedJson::array();
    for (const MemoryEvent::Rank& rank : event.ranks) {
        ranks.push_back({{"state_bytes", rank.state_bytes},
                         {"activation_bytes", rank.activation_bytes},
                         {"least_simulated_bytes", rank.least_simulated_bytes},
                         {"most_simulated_bytes", rank.most_simulated_bytes}});
    }
    return json_text(OrderedJson{{"event", "memory"}, {"step", event.step}, {"ranks", std::move(ranks)}});
}

std::string to_json_line(const PipelineEvent& event) {
    return json_text(OrderedJson{{"event", "pipeline"},
                                 {"step", event.step},
                                 {"first_step", event.first_step},
                                 {"schedule", event.schedule},
                                 {"num_ranks", event.num_ranks},
                                 {"num_microbatches", event.num_microbatches},
                                 {"stages", stages_json(event.stages)},
                                 {"actions_ms", event_number(event.actions_ms)},
                                 {"predicted_ms", event_number(event.predicted_ms)},
                                 {"bubble_idle", number_if(event.bubble_idle)},
                                 {"bubble_predicted", number_if(event.bubble_predicted)}});
}

CutResult cut_after(const fs::path& path, int64_t step, const Logger& logger) {
    return cut_lines_after(path, step, step_of_json, logger);
}

}  // namespace vpp
