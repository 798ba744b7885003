#include "report/metrics.hpp"

#include <algorithm>

namespace vpp {

namespace {

using Number = std::optional<double>;

template <class Event>
struct Row {
    MetricName name;
    Number (*value)(const Event&);
};

Number if_positive(double value) {
    return value > 0 ? Number(value) : std::nullopt;
}

const Row<StepEvent> kStepRows[] = {
    {{"train/loss", "vpp_train_loss", "loss of the global batch"}, [](const StepEvent& e) { return Number(e.loss); }},
    {{"train/grad_norm", "vpp_train_grad_norm", "global norm of the gradients before clipping"},
     [](const StepEvent& e) { return Number(e.grad_norm); }},
    {{"train/lr", "vpp_train_learning_rate", "learning rate of the default parameter group"},
     [](const StepEvent& e) { return Number(e.lr); }},
    {{"train/clipped", "vpp_train_clipped", "1 when the gradients were clipped"},
     [](const StepEvent& e) { return Number(e.clipped); }},
    {{"train/skipped", "vpp_train_skipped", "1 when the step updated nothing"},
     [](const StepEvent& e) { return Number(e.skipped); }},
    {{"train/loss_scale", "vpp_train_loss_scale", "loss scale of fp16"},
     [](const StepEvent& e) { return e.loss_scale; }},
    {{"perf/step_s", "vpp_step_seconds", "duration of the step"},
     [](const StepEvent& e) { return Number(e.step_ms / 1e3); }},
    {{"perf/reduce_s", "vpp_reduce_seconds", "of it for the sums of replicas behind the last action"},
     [](const StepEvent& e) { return Number(e.reduce_ms / 1e3); }},
    {{"perf/samples_per_s", "vpp_samples_per_second", "samples a second"},
     [](const StepEvent& e) { return Number(e.samples_per_second); }},
    {{"perf/tokens_per_s", "vpp_tokens_per_second", "tokens a second"},
     [](const StepEvent& e) { return if_positive(e.tokens_per_second); }},
    {{"perf/flops_per_s", "vpp_flops_per_second", "useful floating point operations a second, of the whole job"},
     [](const StepEvent& e) { return if_positive(e.flops_per_second()); }},
    {{"perf/bubble", "vpp_bubble_ratio", "share of the step that ranks wait, mean over the ranks"},
     [](const StepEvent& e) { return e.bubble_mean; }},
    {{"perf/bubble_worst", "vpp_bubble_worst_ratio", "the same of the rank that waits longest"},
     [](const StepEvent& e) { return e.bubble_worst; }},
    {{"perf/bubble_idle", "vpp_bubble_idle_ratio", "share of the ranks' time in which no action ran"},
     [](const StepEvent& e) { return e.bubble_idle; }},
    {{"perf/bubble_predicted", "vpp_bubble_predicted_ratio", "the same, simulated with these times"},
     [](const StepEvent& e) { return e.bubble_predicted; }},
    {{"memory/resident_bytes", "vpp_resident_bytes", "peak resident memory of the largest rank"},
     [](const StepEvent& e) { return Number(e.memory_bytes); }},
    {{"memory/activation_bytes", "vpp_activation_bytes", "most activations and messages of a rank in the step"},
     [](const StepEvent& e) { return Number(e.activation_bytes); }},
};

const Row<EvalEvent> kEvalRows[] = {
    {{"eval/loss", "vpp_eval_loss", "loss over the validation data"},
     [](const EvalEvent& e) { return Number(e.loss); }},
    {{"eval/samples", "vpp_eval_samples", "samples that were evaluated"},
     [](const EvalEvent& e) { return Number(e.samples); }},
    {{"eval/seconds", "vpp_eval_seconds", "duration of the evaluation"},
     [](const EvalEvent& e) { return Number(e.seconds); }},
    {{"eval/accuracy", "vpp_eval_accuracy", "share of the targets that are the largest output"},
     [](const EvalEvent& e) { return e.accuracy; }},
    {{"eval/perplexity", "vpp_eval_perplexity", "e to the power of the loss over the validation data"},
     [](const EvalEvent& e) { return e.perplexity; }},
};

const Row<SaveEvent> kSaveRows[] = {
    {{"checkpoint/bytes", "vpp_checkpoint_bytes", "size of the checkpoint"},
     [](const SaveEvent& e) { return Number(e.size_bytes); }},
    {{"checkpoint/seconds", "vpp_checkpoint_seconds", "from the start of the save until it was durable"},
     [](const SaveEvent& e) { return Number(e.seconds); }},
    {{"checkpoint/pause_s", "vpp_checkpoint_pause_seconds", "how long training stood still for it"},
     [](const SaveEvent& e) { return Number(e.pause_seconds); }},
};

/// The largest figure of a rank; empty where there is none.
Number largest(const MemoryEvent& event, int64_t MemoryEvent::Rank::*figure) {
    const auto most = std::max_element(event.ranks.begin(), event.ranks.end(),
                                       [&](const auto& one, const auto& other) { return one.*figure < other.*figure; });
    return most == event.ranks.end() ? std::nullopt : Number((*most).*figure);
}

const Row<MemoryEvent> kMemoryRows[] = {
    {{"memory/state_bytes", "vpp_state_bytes", "most weights, buffers and optimizer state of a rank"},
     [](const MemoryEvent& e) { return largest(e, &MemoryEvent::Rank::state_bytes); }},
};

template <class Event, size_t N>
std::vector<Reading> read(const Row<Event> (&rows)[N], const Event& event) {
    std::vector<Reading> readings;
    for (const auto& row : rows) readings.push_back({row.name, row.value(event)});
    return readings;
}

template <class Event, size_t N>
void add_names(const Row<Event> (&rows)[N], std::vector<MetricName>& names) {
    for (const auto& row : rows) names.push_back(row.name);
}

std::vector<MetricName> all_names() {
    std::vector<MetricName> names;
    add_names(kStepRows, names);
    add_names(kEvalRows, names);
    add_names(kSaveRows, names);
    add_names(kMemoryRows, names);
    return names;
}

}  // namespace

std::vector<Reading> readings(const StepEvent& event) {
    return read(kStepRows, event);
}

std::vector<Reading> readings(const EvalEvent& event) {
    return read(kEvalRows, event);
}

std::vector<Reading> readings(const SaveEvent& event) {
    return read(kSaveRows, event);
}

std::vector<Reading> readings(const MemoryEvent& event) {
    return read(kMemoryRows, event);
}

const std::vector<MetricName>& metric_names() {
    static const std::vector<MetricName> names = all_names();
    return names;
}

}  // namespace vpp
