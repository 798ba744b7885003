#include "engine/run_facts.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"
#include "base/units.hpp"
#include "engine/agreement.hpp"
#include "engine/engine.hpp"
#include "optim/lr.hpp"
#include "plan/batch_size.hpp"
#include "plan/lr_rules.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

constexpr const char* kOptimizerValues = "optimizer values";
constexpr const char* kLrSchedule = "learning rate schedule";
constexpr const char* kSteps = "train.steps";
/// Not what the plan says: with "auto", what a header or index says that may not be there any more.
constexpr const char* kTokenTypes = "the type of the tokens";

using Facts = std::map<std::string, std::string>;

/// Facts whose change makes a resumed run another run; the rest is said.
constexpr std::array<std::string_view, 19> kRefused{"model",
                                                    "data",
                                                    "global_batch_size",
                                                    "num_microbatches",
                                                    "seed",
                                                    "precision",
                                                    "optimizer",
                                                    "freeze",
                                                    "model.eval_modules",
                                                    "model.inputs",
                                                    "loss.target",
                                                    "data.shuffle",
                                                    "model.loss_reduction",
                                                    "data.transform",
                                                    "data.documents",
                                                    "data.sequence_length",
                                                    "data.weights",
                                                    "data.val_split",
                                                    kTokenTypes};

/// Facts of keys that are younger than checkpoints: what one means that does not know them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kMeant{{{"data.transform", "[]"},
                                                                               {"data.weights", "[]"},
                                                                               {"data.val_split", "0.0"},
                                                                               {"data.documents", "joined"},
                                                                               {"model.eval_modules", "[]"}}};

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

/// Adds what values_text has written, under plan keys.
void add_values(Facts& entries, const std::string& section, const std::string& text) {
    constexpr std::array kKeys{"lr",       "weight_decay", "betas[0]", "betas[1]", "eps",
                               "momentum", "dampening",    "nesterov", "amsgrad"};
    const nlohmann::json values = nlohmann::json::parse(text);
    for (size_t i = 0; i < kKeys.size(); ++i) entries[section + '.' + kKeys[i]] = values.at(i).dump();
}

/// The parts of a fact that is a list, under plan keys.
/// Throws: std::exception for a text that none of these functions has written.
Facts entries_of(const std::string& name, const std::string& text) {
    const nlohmann::json list = nlohmann::json::parse(text);
    Facts entries;
    if (name == kOptimizerValues) {
        add_values(entries, "optimizer", list.at(0).get<std::string>());
        entries["optimizer.clip_norm"] = list.at(1).dump();
        auto matches = nlohmann::json::array();
        for (size_t i = 2; i < list.size(); ++i) {
            matches.push_back(list[i].at(0));
            add_values(entries, "optimizer.group[" + std::to_string(i - 2) + ']', list[i].at(1).get<std::string>());
        }
        entries["optimizer.group"] = matches.dump();
    } else {
        constexpr std::array kKeys{"kind", "warmup_steps", "min_lr", "decay_steps", "gamma"};
        for (size_t i = 0; i < kKeys.size(); ++i) {
            entries["lr_schedule." + std::string(kKeys[i])] = list.at(i).dump();
        }
        entries["lr_schedule.restart_every"] = list.size() > kKeys.size() ? list[kKeys.size()].dump() : "0";
    }
    return entries;
}

std::string was_and_is(const std::string& name, const std::string& before, const std::string& now) {
    return name + " was " + printable(before) + ", now " + printable(now);
}

/// What has changed, by plan key. A group is compared with the one that took the same parameters, and what it inherits
/// is said once.
std::string changed_entries(const Facts& before, const Facts& now) {
    const std::string group = "optimizer.group";
    const bool same_groups = !now.contains(group) || before.at(group) == now.at(group);
    std::string text;
    for (const auto& [key, value] : now) {
        const bool in_group = key.starts_with(group + '[');
        if ((in_group && !same_groups) || before.at(key) == value) continue;
        const std::string own = in_group ? "optimizer" + key.substr(key.find(']') + 1) : key;
        if (in_group && before.at(key) == before.at(own) && value == now.at(own)) continue;
        text += (text.empty() ? "" : "; ") + was_and_is(key, before.at(key), value);
    }
    return text;
}

/// Of the fact "data", which has the digest of the training data, and behind a plus sign that of the validation data.
std::string training_part(const std::string& digests) {
    return digests.substr(0, digests.find('+'));
}

std::string change_text(const std::string& name, const std::string& before, const std::string& now) {
    if (name == kOptimizerValues || name == kLrSchedule) {
        try {
            const std::string text = changed_entries(entries_of(name, before), entries_of(name, now));
            if (!text.empty()) return text;
        } catch (const std::exception&) {  // of another vpp: shown as it is
        }
    }
    if (name == "data") return was_and_is("the training data", training_part(before), training_part(now));
    const bool is_product = name == "num_microbatches";
    return was_and_is(is_product ? "pipeline.num_microbatches x train.accumulate" : name, before, now);
}

/// What facts say of the learning rate.
struct Rates {
    LrSchedulePlan schedule;
    double lr = 0;
    int64_t steps = 0;

    double at(int64_t step) const { return learning_rate(schedule, lr, step, steps); }
};

/// Throws: std::exception for facts without it, or in another form.
Rates rates_of(const Facts& facts) {
    const Facts schedule = entries_of(kLrSchedule, facts.at(kLrSchedule));
    const Facts values = entries_of(kOptimizerValues, facts.at(kOptimizerValues));
    const auto read = [](const Facts& entries, const std::string& key, auto& number) {
        nlohmann::json::parse(entries.at(key)).get_to(number);
    };
    Rates rates;
    rates.steps = std::stoll(facts.at(kSteps));
    read(values, "optimizer.lr", rates.lr);
    read(schedule, "lr_schedule.kind", rates.schedule.kind);
    read(schedule, "lr_schedule.warmup_steps", rates.schedule.warmup_steps);
    read(schedule, "lr_schedule.min_lr", rates.schedule.min_lr);
    read(schedule, "lr_schedule.decay_steps", rates.schedule.decay_steps);
    read(schedule, "lr_schedule.gamma", rates.schedule.gamma);
    read(schedule, "lr_schedule.restart_every", rates.schedule.restart_every);
    return rates;
}

/// What another number of steps makes of a schedule that spans them all; empty where the finished steps would have had
/// the same rates.
std::string span_text(const CheckpointState& saved, const Facts& now) {
    if (saved.step == 0) return "";
    try {
        if (saved.facts.at(kLrSchedule) != now.at(kLrSchedule)) return "";  // said as a change of its own
        const Rates before = rates_of(saved.facts), after = rates_of(now);
        if (after.steps <= saved.step) return "";
        Rates longer = before;
        longer.steps = after.steps;
        const double last = before.at(saved.step - 1);
        if (longer.at(saved.step - 1) == last) return "";
        const std::string kind = before.schedule.kind;
        const int64_t decay = before.steps - before.schedule.warmup_steps;
        const bool keeps = lr_kind(kind).no_decay_steps == NoDecaySteps::WholeSpan && decay > 0;
        return was_and_is(kSteps, std::to_string(before.steps), std::to_string(after.steps)) +
               ", and the learning rate (" + kind + ") spans them: it was " + formatted("%.3g", last) + " at step " +
               std::to_string(saved.step) + " and is " + formatted("%.3g", after.at(saved.step)) + " at step " +
               std::to_string(saved.step + 1) +
               (keeps ? "; lr_schedule.decay_steps = " + std::to_string(decay) + " keeps the old span" : "");
    } catch (const std::exception&) {
        return "";  // a checkpoint that does not say it
    }
}

}  // namespace

std::map<std::string, std::string> facts_of(const Plan& plan, const Program& program, at::Device device) {
    const NumericEnvironment environment = numeric_environment(plan, device);
    return {{"model", to_hex(program.training.graph.digest)},
            {"data", program.data_digest},
            {"global_batch_size", std::to_string(*plan.train.global_batch_size)},
            {"num_microbatches", std::to_string(microbatches_of_step(plan))},
            {"seed", std::to_string(plan.train.seed)},
            {"precision", plan.train.precision},
            {"optimizer", plan.optimizer.kind},
            {"model.eval_modules", nlohmann::json(plan.model.eval_modules).dump()},
            {"model.inputs", inputs_text(plan, program.training.graph)},
            {"model.loss_reduction", plan.model.loss_reduction},
            {"loss.target", plan.loss ? plan.loss->target : ""},
            {kTokenTypes, program.token_types},
            {"data.transform", transforms_text(plan.data.transforms)},
            {"data.weights", nlohmann::json(plan.data.weights).dump()},
            {"data.val_split", nlohmann::json(plan.data.val_split).dump()},
            {"data.documents", plan.data.documents},
            {"data.shuffle", plan.data.shuffle ? "true" : "false"},
            {"data.sequence_length", std::to_string(plan.data.sequence_length)},
            {"freeze", nlohmann::json(plan.model.freeze).dump()},
            {kOptimizerValues, optimizer_text(plan.optimizer)},
            {kLrSchedule, lr_schedule_text(plan.lr_schedule)},
            {"threads", std::to_string(environment.threads)},
            {"dp", std::to_string(program.mesh.dp)},
            {"tied_gradients", plan.pipeline.tied_gradients},
            {"deferred_batch_norm", plan.pipeline.deferred_batch_norm ? "true" : "false"},
            {"torch", environment.torch_version},
            {"cpu_capability", environment.cpu_capability},
            {"device", environment.device.empty() ? "cpu" : environment.device}};
}

std::map<std::string, std::string> training_facts(const Plan& plan, const Program& program, const Engine& engine) {
    std::map<std::string, std::string> facts = facts_of(plan, program, engine.device());
    facts[kSteps] = std::to_string(engine.total_steps());
    return facts;
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
    std::vector<std::string> warnings;
    const auto warn_of = [&warnings](const std::string& change) {
        if (!change.empty()) warnings.push_back("resumed with other settings, so other bits are possible: " + change);
    };
    for (const auto& [name, value] : now) {
        const auto before = fact_of(saved, name);
        if (!before || *before == value || name == kSteps) continue;
        if (name == "data" && training_part(*before) == training_part(value)) {
            warnings.emplace_back(
                "resumed with other validation data: losses of evaluations from here on are of other samples, and "
                "checkpoint.keep_best compares them with those before");
            continue;
        }
        const std::string change = change_text(name, *before, value);
        if (std::ranges::find(kRefused, name) != kRefused.end()) {
            problems.push_back({folder.string() + " belongs to another run: " + change +
                                    "; set it back, or start anew with another run.dir or checkpoint.resume = \"no\"",
                                std::nullopt});
        } else {
            warn_of(change);
        }
    }
    if (!problems.empty()) throw Error(ErrorKind::Refused, std::move(problems));
    warn_of(span_text(saved, now));
    for (const std::string& warning : warnings) log->warn(warning);
}

}  // namespace vpp
