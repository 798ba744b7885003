#include "compare/comparison_json.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_text.hpp"

namespace vpp {

namespace {

using Json = nlohmann::ordered_json;

Json number(const std::optional<double>& value) {
    return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

Json settings_of(const Comparison& comparison, size_t run) {
    Json settings = Json::object();
    for (const Difference& one : comparison.differences) {
        settings[one.key] = one.values[run] ? Json(*one.values[run]) : Json(nullptr);
    }
    return settings;
}

/// Null where there is no such loss.
Json step_of(const std::optional<double>& loss, int64_t step) {
    return loss ? Json(step) : Json(nullptr);
}

Json run_json(const Comparison& comparison, size_t place) {
    const ComparedRun& run = comparison.runs[place];
    const RunSummary& summary = run.summary;
    return {{"mark", run.mark},
            {"run", run.record.name},
            {"state", run.state},
            {"exit_code", run.record.end ? Json(run.record.end->exit_code) : Json(nullptr)},
            {"end", run.record.end ? Json(run.record.end->text) : Json(nullptr)},
            {"settings", settings_of(comparison, place)},
            {"step", summary.last_step},
            {"total_steps", summary.total_steps},
            {"skipped_steps", summary.num_skipped},
            {"last_loss", number(summary.last_loss)},
            {"best_loss", number(summary.best_loss)},
            {"best_loss_step", step_of(summary.best_loss, summary.best_loss_step)},
            {"best_validation_loss", number(summary.best_evaluation)},
            {"best_validation_step", step_of(summary.best_evaluation, summary.best_evaluation_step)},
            {"best_accuracy", number(summary.best_accuracy)},
            {"best_perplexity", number(summary.best_perplexity)},
            {summary.has_tokens ? "tokens_per_second" : "samples_per_second", number(summary.rate)},
            {"flops_per_second", number(summary.flops_rate)},
            {"waiting", number(summary.waiting)},
            {"bubble", number(summary.bubble)},
            {"bubble_predicted", number(summary.predicted_bubble)},
            {"memory_bytes", summary.memory_bytes},
            {"seconds", summary.seconds},
            {"notes", run.record.notes}};
}

}  // namespace

std::string comparison_json(const Comparison& comparison) {
    Json runs = Json::array();
    for (size_t i = 0; i < comparison.runs.size(); ++i) runs.push_back(run_json(comparison, i));
    Json all = Json::object();
    all["runs"] = std::move(runs);
    return json_text(all);
}

}  // namespace vpp
