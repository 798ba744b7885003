#include "program/cost_file.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/hash.hpp"
#include "base/json_text.hpp"
#include "base/shell.hpp"
#include "base/suggest.hpp"
#include "base/units.hpp"
#include "graph/split.hpp"
#include "plan/batch_size.hpp"

namespace vpp {

namespace {

using nlohmann::json;

constexpr uint64_t kMostBytes = uint64_t{16} << 20;
constexpr double kLongestTime = 1e9;
constexpr double kShortestTotal = 1e-9;  // of all F: ticks of it stay whole numbers
constexpr double kMebibyte = 1 << 20;
constexpr JsonLimits kLimits{.max_depth = 4, .max_values = 2'000'000};

/// Reads the tree of one file; every complaint names the place in it.
class CostFileReader {
  public:
    explicit CostFileReader(std::string name) : name_(std::move(name)) {}

    CostFile read(const std::string& text) const {
        const json root = parse_json(text, kLimits, name_);
        check_keys(
            root, "",
            {"unit", "transfer", "transfer_per_mib", "modules", "parts", "model", "microbatch_size", "measured"});
        if (root.contains("modules") == root.contains("parts")) {
            refuse("", root.contains("parts") ? "has \"modules\" and \"parts\" (expected one of them)"
                                              : "has no \"modules\"");
        }
        CostFile file;
        file.name = name_;
        file.unit = words(root, "unit");
        file.transfer = time(root, "", "transfer").value_or(0);
        file.transfer_per_mib = time(root, "", "transfer_per_mib").value_or(0);
        if (root.contains("parts")) {
            read_parts(root, file);
        } else {
            read_modules(root, file);
        }
        file.digest = to_hex(hash_text(text));
        return file;
    }

  private:
    [[noreturn]] void refuse(const std::string& place, const std::string& what) const {
        throw Error(ErrorKind::BadData, name_ + ": " + (place.empty() ? "" : '"' + printable(place) + "\" ") + what);
    }

    void check_object(const json& value, const std::string& place) const {
        if (!value.is_object()) refuse(place, "is no object (expected {...})");
    }

    void check_keys(const json& value, const std::string& place, const std::vector<std::string>& known) const {
        check_object(value, place);
        for (const auto& [key, unused] : value.items()) {
            if (std::find(known.begin(), known.end(), key) != known.end()) continue;
            refuse(place, "has an unknown key '" + printable(key) + '\'' + did_you_mean(key, known));
        }
    }

    std::optional<double> time(const json& value, const std::string& place, const char* key) const {
        if (!value.contains(key)) return std::nullopt;
        const std::string where = place.empty() ? key : place + '.' + key;
        if (!value[key].is_number()) refuse(where, "is no number");
        const auto number = value[key].get<double>();
        if (!(number >= 0 && number <= kLongestTime)) refuse(where, "is no time (expected 0 to 1e9)");
        return number;
    }

    std::string words(const json& root, const char* key) const {
        if (!root.contains(key)) return "";
        if (!root[key].is_string()) refuse(key, "is no text");
        return printable(root[key].get<std::string>());
    }

    void read_modules(const json& root, CostFile& file) const {
        check_object(root["modules"], "modules");
        for (const auto& [module, times] : root["modules"].items()) file.modules.push_back(read_module(module, times));
        if (file.modules.empty()) refuse("modules", "is empty (expected at least one submodule with its times)");
        double total = 0;
        for (const ModuleTimes& module : file.modules) total += module.forward;
        check_total(total, "modules");
    }

    void check_total(double forward, const char* place) const {
        if (forward == 0) refuse(place, "takes no time at all");
        if (forward < kShortestTotal) refuse(place, "takes next to no time (expected F of 1e-9 and more in all)");
    }

    void read_parts(const json& root, CostFile& file) const {
        file.model = words(root, "model");
        file.measured = words(root, "measured");
        if (root.contains("microbatch_size")) file.microbatch_size = count(root, "microbatch_size", "microbatch_size");
        if (!root["parts"].is_array()) refuse("parts", "is no list (expected [...])");
        for (const json& part : root["parts"]) {
            const std::string place = "parts[" + std::to_string(file.parts.size()) + ']';
            file.parts.push_back(read_part(part, place, file.parts.empty() ? 0 : file.parts.back().ops.end));
        }
        double total = 0;
        for (const PartTimes& part : file.parts) total += part.times.forward;
        check_total(total, "parts");
    }

    int64_t count(const json& value, const std::string& place, const char* key) const {
        const bool is_count = value.contains(key) && value[key].is_number_unsigned();
        if (!is_count || value[key].get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
            refuse(place, "is no whole number from 0");
        }
        return value[key].get<int64_t>();
    }

    PartTimes read_part(const json& value, const std::string& place, int begin) const {
        check_keys(value, place, {"ops", "module", "F", "B", "I", "W", "bytes"});
        PartTimes part;
        const bool has_range = value.contains("ops") && value["ops"].is_array() && value["ops"].size() == 2 &&
                               value["ops"][0].is_number_unsigned() && value["ops"][1].is_number_unsigned();
        const uint64_t most = INT32_MAX;
        if (!has_range || value["ops"][0] != begin || value["ops"][1] <= begin || value["ops"][1] > most) {
            refuse(place + ".ops", "is no run of ops behind the part before it (expected [" + std::to_string(begin) +
                                       ", a larger number])");
        }
        part.ops = {begin, value["ops"][1].get<int>()};
        if (value.contains("module")) part.module = words(value, "module");
        const auto needed = [&](const char* key) {
            const auto number = time(value, place, key);
            if (!number) refuse(place, std::string("has no ") + key);
            return *number;
        };
        part.times = {needed("F"), needed("B"), needed("I"), needed("W")};
        if (value.contains("bytes")) part.kept_bytes = count(value, place + ".bytes", "bytes");
        return part;
    }

    ModuleTimes read_module(const std::string& module, const json& value) const {
        check_keys(value, module, {"F", "B", "I", "W"});
        ModuleTimes times{module, 0, time(value, module, "B"), time(value, module, "I"), time(value, module, "W")};
        const auto forward = time(value, module, "F");
        if (!forward) refuse(module, "has no F");
        times.forward = *forward;
        const bool has_halves = times.input_gradient && times.weight_gradient;
        const bool has_one_half = times.input_gradient.has_value() != times.weight_gradient.has_value();
        if (has_one_half || (!has_halves && !times.backward)) refuse(module, "needs B, or both I and W");
        return times;
    }

    std::string name_;
};

/// The listed submodule that an op belongs to: the one with the longest name; -1 for none.
int owner_of(const GraphOp& op, const std::vector<ModuleTimes>& modules) {
    int owner = -1;
    for (size_t i = 0; i < modules.size(); ++i) {
        if (!modules[i].module.empty() && !lies_in(op.module, modules[i].module)) continue;
        const bool longer = owner < 0 || modules[i].module.size() > modules[static_cast<size_t>(owner)].module.size();
        if (longer) owner = static_cast<int>(i);
    }
    return owner;
}

/// The costs of a submodule from its times and from what is estimated for its ops together.
OpCosts costs_of(const ModuleTimes& times, const OpCosts& estimate) {
    OpCosts costs;
    costs.forward = times.forward;
    if (times.input_gradient) {
        costs.input_gradient = *times.input_gradient;
        costs.weight_gradient = *times.weight_gradient;
        costs.backward = times.backward.value_or(costs.input_gradient + costs.weight_gradient);
        return costs;
    }
    costs.backward = *times.backward;
    const double share = estimate.backward > 0 ? estimate.input_gradient / estimate.backward : 1;
    costs.input_gradient = costs.backward * share;
    costs.weight_gradient = costs.backward - costs.input_gradient;
    return costs;
}

/// The part of `total` that falls to one of `count` ops with `part` of their estimates' `sum`.
double share_of(double total, double part, double sum, int count) {
    return sum > 0 ? total * (part / sum) : total / count;
}

/// Ops, their owners among the listed submodules, and what is estimated for each owner.
struct Ownership {
    std::vector<int> owner_of_op;
    std::vector<OpCosts> estimates;  ///< by submodule
    std::vector<int> counts;         ///< ops, by submodule
};

Ownership find_owners(const std::vector<ModuleTimes>& modules, const Graph& graph, const CostModel& estimate) {
    Ownership owners{{}, std::vector<OpCosts>(modules.size()), std::vector<int>(modules.size())};
    for (size_t op = 0; op < graph.ops.size(); ++op) {
        const int owner = owner_of(graph.ops[op], modules);
        owners.owner_of_op.push_back(owner);
        if (owner < 0) continue;
        owners.estimates[static_cast<size_t>(owner)] += estimate.ops[op];
        ++owners.counts[static_cast<size_t>(owner)];
    }
    return owners;
}

void check_owners(const CostFile& file, const Ownership& owners, const Graph& graph, const Plan& plan) {
    std::vector<std::string> names;
    for (const GraphModule& module : graph.modules) names.push_back(module.name);
    for (size_t i = 0; i < file.modules.size(); ++i) {
        const std::string& module = file.modules[i].module;
        if (owners.counts[i] > 0) continue;
        const bool exists = std::find(names.begin(), names.end(), module) != names.end();
        throw Error(ErrorKind::Plan,
                    file.name + (exists ? " has times of '" + printable(module) + "', which computes nothing of its own"
                                        : " has times of '" + printable(module) + "', which the model has not" +
                                              did_you_mean(module, names)),
                    plan.where("pipeline.cost_file"));
    }
}

/// How long what is estimated as one takes on the machine of the file.
double rate_of(const CostFile& file, const Ownership& owners) {
    double measured = 0, estimated = 0;
    for (size_t i = 0; i < file.modules.size(); ++i) {
        measured += file.modules[i].forward;
        estimated += owners.estimates[i].forward;
    }
    return estimated > 0 ? measured / estimated : 0;
}

/// The times of a submodule or part by the estimates of its ops.
OpCosts share_of(const OpCosts& total, const OpCosts& part, const OpCosts& sum, int count) {
    return {share_of(total.forward, part.forward, sum.forward, count),
            share_of(total.backward, part.backward, sum.backward, count),
            share_of(total.input_gradient, part.input_gradient, sum.input_gradient, count),
            share_of(total.weight_gradient, part.weight_gradient, sum.weight_gradient, count)};
}

std::string measure_again(const CostFile& file, const Plan& plan) {
    std::vector<std::string> words{"vpp", "profile", plan.file};
    for (const std::string& setting : plan.settings) words.insert(words.end(), {"--set", setting});
    words.insert(words.end(), {"--out", file.name});
    return "measure again: " + shell_line(words);
}

void check_parts(const CostFile& file, const Graph& graph, const Plan& plan) {
    const int end = file.parts.empty() ? 0 : file.parts.back().ops.end;
    const bool is_of_model = file.model == to_hex(graph.digest);
    if (is_of_model && end == graph.num_ops()) return;
    const std::string what = is_of_model ? " has times of " + counted_text(end, "op") + ", and this plan's model has " +
                                               std::to_string(graph.num_ops())
                                         : " was measured for another model or with other settings of it (digest " +
                                               file.model + ", this plan's is " + to_hex(graph.digest) + ")";
    throw Error(ErrorKind::Plan, file.name + what + "; " + measure_again(file, plan), plan.where("pipeline.cost_file"));
}

CostModel costs_of_parts(const CostFile& file, const Graph& graph, const CostModel& estimate, const Plan& plan) {
    check_parts(file, graph, plan);
    CostModel model;
    for (const PartTimes& part : file.parts) {
        OpCosts sum;
        for (int op = part.ops.begin; op < part.ops.end; ++op) sum += estimate.ops[static_cast<size_t>(op)];
        for (int op = part.ops.begin; op < part.ops.end; ++op) {
            const OpCosts& own = estimate.ops[static_cast<size_t>(op)];
            model.ops.push_back(share_of(part.times, own, sum, part.ops.end - part.ops.begin));
        }
    }
    model.source = file.name + " (digest " + file.digest + "), measured in " +
                   counted_text(static_cast<int64_t>(file.parts.size()), "part");
    const int64_t samples = samples_of_microbatch(plan);
    if (file.microbatch_size != samples) {
        model.warning = file.name + " was measured with microbatches of " +
                        counted_text(file.microbatch_size, "sample") + " instead of " + std::to_string(samples) +
                        ", whose parts may cost otherwise; " + measure_again(file, plan);
    }
    return model;
}

CostModel costs_of_modules(const CostFile& file, const Graph& graph, const CostModel& estimate, const Plan& plan) {
    const Ownership owners = find_owners(file.modules, graph, estimate);
    check_owners(file, owners, graph, plan);
    const double rate = rate_of(file, owners);
    CostModel model;
    size_t num_measured = 0;
    for (size_t op = 0; op < graph.ops.size(); ++op) {
        const OpCosts& part = estimate.ops[op];
        if (owners.owner_of_op[op] < 0) {
            model.ops.push_back(
                {part.forward * rate, part.backward * rate, part.input_gradient * rate, part.weight_gradient * rate});
            continue;
        }
        const auto owner = static_cast<size_t>(owners.owner_of_op[op]);
        const OpCosts& sum = owners.estimates[owner];
        model.ops.push_back(share_of(costs_of(file.modules[owner], sum), part, sum, owners.counts[owner]));
        ++num_measured;
    }
    model.source = file.name + " (digest " + file.digest + "), " + std::to_string(num_measured) + " of " +
                   std::to_string(graph.ops.size()) + " ops, the others by FLOPs";
    return model;
}

}  // namespace

bool goes_by_costs(const Plan& plan) {
    return cuts_by_time(plan) || plan.pipeline.schedule_type == "AUTO";
}

std::string cost_file_of(const Plan& plan) {
    if (!plan.pipeline.cost_file.empty()) return plan.pipeline.cost_file;
    if (!goes_by_costs(plan)) return "";
    const std::filesystem::path measured = std::filesystem::path(plan.run.dir) / kRunCosts;
    std::error_code error;
    return std::filesystem::exists(measured, error) ? measured.string() : "";
}

std::string to_json_text(const CostFile& file) {
    nlohmann::ordered_json root{{"unit", file.unit},
                                {"transfer", file.transfer},
                                {"transfer_per_mib", file.transfer_per_mib},
                                {"model", file.model},
                                {"microbatch_size", file.microbatch_size},
                                {"measured", file.measured}};
    std::string text = root.dump(1);
    text.resize(text.size() - 2);  // the line end and the brace: a part a line follows
    text += ",\n \"parts\": [";
    for (size_t i = 0; i < file.parts.size(); ++i) {
        const PartTimes& part = file.parts[i];
        const nlohmann::ordered_json line{{"ops", {part.ops.begin, part.ops.end}},
                                          {"module", part.module},
                                          {"F", part.times.forward},
                                          {"B", part.times.backward},
                                          {"I", part.times.input_gradient},
                                          {"W", part.times.weight_gradient},
                                          {"bytes", part.kept_bytes}};
        text += (i == 0 ? "\n  " : ",\n  ") + line.dump();
    }
    return text + "\n ]\n}\n";
}

CostFile parse_cost_file(const std::string& text, const std::string& name) {
    return CostFileReader(printable(name)).read(text);
}

CostFile read_cost_file(const std::string& path) {
    try {
        return parse_cost_file(read_text_file(path, kMostBytes), path);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::BadData) throw;
        throw Error(ErrorKind::BadData, error.problems().front().message +
                                            "; vpp profile PLAN --out FILE writes a new one, and one in a run folder "
                                            "may be removed");
    }
}

CostModel measured_costs(const CostFile& file, const Graph& graph, const CostModel& estimate, const Plan& plan) {
    CostModel model = file.parts.empty() ? costs_of_modules(file, graph, estimate, plan)
                                         : costs_of_parts(file, graph, estimate, plan);
    model.transfer = file.transfer;
    model.transfer_of_a_byte = file.transfer_per_mib / kMebibyte;
    model.unit = file.unit;
    model.is_measured = true;
    return model;
}

}  // namespace vpp
