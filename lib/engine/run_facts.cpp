#include "engine/run_facts.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"
#include "engine/agreement.hpp"
#include "plan/batch_size.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

/// Facts whose change makes a resumed run another run; the rest is said.
constexpr std::array<std::string_view, 18> kRefused{"model",
                                                    "data",
                                                    "global_batch_size",
                                                    "num_microbatches",
                                                    "seed",
                                                    "precision",
                                                    "optimizer",
                                                    "freeze",
                                                    "model.inputs",
                                                    "loss.target",
                                                    "data.shuffle",
                                                    "model.loss_reduction",
                                                    "data.transform",
                                                    "data.documents",
                                                    "data.sequence_length",
                                                    "data.weights",
                                                    "data.val_split",
                                                    "data.token_dtype"};

/// Facts of keys that are younger than checkpoints: what one means that does not know them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kMeant{
    {{"data.transform", "[]"}, {"data.weights", "[]"}, {"data.val_split", "0.0"}, {"data.documents", "joined"}}};

/// What the tables say, and nothing of keys that are left out: these may become more.
std::string transforms_text(const std::vector<TransformPlan>& transforms) {
    auto list = nlohmann::ordered_json::array();
    for (const TransformPlan& transform : transforms) {
        nlohmann::ordered_json table{{"field", transform.field}};
        const auto add = [&](const char* key, const auto& value, const auto& usual) {
            if (value != usual) table[key] = value;
        };
        const TransformPlan usual;
        add("resize", transform.resize, usual.resize);
        add("crop", transform.crop, usual.crop);
        add("pad", transform.pad, usual.pad);
        add("flip", transform.flip, usual.flip);
        add("scale", transform.scale, usual.scale);
        add("mean", transform.mean, usual.mean);
        add("std", transform.deviation, usual.deviation);
        list.push_back(std::move(table));
    }
    return list.dump();
}

/// The fields that go into the model, in the order of its arguments; the loss's target has a fact of its own.
std::string inputs_text(const Plan& plan, const Graph& graph) {
    auto names = nlohmann::json::array();
    for (const GraphInput& input : graph.inputs) names.push_back(input.name);
    if (plan.loss && !names.empty() && names.back() == plan.loss->target) names.erase(names.size() - 1);
    return names.dump();
}

std::string values_text(const OptimizerValues& values) {
    const nlohmann::json list{values.lr,       values.weight_decay, values.beta1,    values.beta2,  values.eps,
                              values.momentum, values.dampening,    values.nesterov, values.amsgrad};
    return list.dump();
}

/// All numbers of the update rule: they may change between runs, and the change is said.
std::string optimizer_text(const OptimizerPlan& optimizer) {
    nlohmann::json text{values_text(optimizer.values), optimizer.clip_norm};
    for (const OptimizerGroup& group : optimizer.groups) text.push_back({group.match, values_text(group.values)});
    return text.dump();
}

std::string lr_schedule_text(const LrSchedulePlan& schedule) {
    nlohmann::json text{schedule.kind, schedule.warmup_steps, schedule.min_lr, schedule.decay_steps, schedule.gamma};
    if (schedule.restart_every > 0) text.push_back(schedule.restart_every);
    return text.dump();
}

}  // namespace

std::map<std::string, std::string> facts_of(const Plan& plan, const Program& program, at::Device device) {
    const NumericEnvironment environment = numeric_environment(plan, device);
    // Where a header says it, other words than its own are refused.
    const std::string token_dtype = plan.data.token_dtype == "auto" ? "uint16" : plan.data.token_dtype;
    return {{"model", to_hex(program.training.graph.digest)},
            {"data", program.data_digest},
            {"global_batch_size", std::to_string(*plan.train.global_batch_size)},
            {"num_microbatches", std::to_string(microbatches_of_step(plan))},
            {"seed", std::to_string(plan.train.seed)},
            {"precision", plan.train.precision},
            {"optimizer", plan.optimizer.kind},
            {"model.inputs", inputs_text(plan, program.training.graph)},
            {"model.loss_reduction", plan.model.loss_reduction},
            {"loss.target", plan.loss ? plan.loss->target : ""},
            {"data.token_dtype", token_dtype},
            {"data.transform", transforms_text(plan.data.transforms)},
            {"data.weights", nlohmann::json(plan.data.weights).dump()},
            {"data.val_split", nlohmann::json(plan.data.val_split).dump()},
            {"data.documents", plan.data.documents},
            {"data.shuffle", plan.data.shuffle ? "true" : "false"},
            {"data.sequence_length", std::to_string(plan.data.sequence_length)},
            {"freeze", nlohmann::json(plan.model.freeze).dump()},
            {"optimizer values", optimizer_text(plan.optimizer)},
            {"learning rate schedule", lr_schedule_text(plan.lr_schedule)},
            {"threads", std::to_string(environment.threads)},
            {"dp", std::to_string(program.mesh.dp)},
            {"tied_gradients", plan.pipeline.tied_gradients},
            {"deferred_batch_norm", plan.pipeline.deferred_batch_norm ? "true" : "false"},
            {"torch", environment.torch_version},
            {"cpu_capability", environment.cpu_capability},
            {"device", environment.device.empty() ? "cpu" : environment.device}};
}

std::optional<std::string> fact_of(const CheckpointState& saved, const std::string& name) {
    if (const auto fact = saved.facts.find(name); fact != saved.facts.end()) return fact->second;
    for (const auto& [key, meant] : kMeant) {
        if (key == name) return std::string(meant);
    }
    return std::nullopt;
}

void compare_facts(const CheckpointState& saved, const std::map<std::string, std::string>& now, const fs::path& folder,
                   const Logger& log) {
    std::vector<Problem> problems;
    for (const auto& [name, value] : now) {
        const auto before = fact_of(saved, name);
        if (!before || *before == value) continue;
        const std::string change = name + " was " + *before + ", now " + value;
        if (std::ranges::find(kRefused, name) != kRefused.end()) {
            problems.push_back({folder.string() + " belongs to another run: " + change +
                                    "; set it back, or start anew with another run.dir or checkpoint.resume = \"no\"",
                                std::nullopt});
        } else {
            log->warn("resumed with other settings, so other bits are possible: " + change);
        }
    }
    if (!problems.empty()) throw Error(ErrorKind::Refused, std::move(problems));
}

}  // namespace vpp
