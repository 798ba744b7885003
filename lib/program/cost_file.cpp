#include "program/cost_file.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/hash.hpp"
#include "base/suggest.hpp"

namespace vpp {

namespace {

using nlohmann::json;

constexpr uint64_t kMostBytes = uint64_t{16} << 20;
constexpr double kLongestTime = 1e9;
constexpr double kMebibyte = 1 << 20;

/// Reads the tree of one file; every complaint names the place in it.
class CostFileReader {
  public:
    explicit CostFileReader(std::string name) : name_(std::move(name)) {}

    CostFile read(const std::string& text) const {
        const json root = json::parse(text, nullptr, /*allow_exceptions=*/false);
        if (root.is_discarded()) refuse("", "is no JSON");
        check_keys(root, "", {"unit", "transfer", "transfer_per_mib", "modules"});
        if (!root.contains("modules")) refuse("", "has no \"modules\"");
        CostFile file;
        if (root.contains("unit")) {
            if (!root["unit"].is_string()) refuse("unit", "is no text");
            file.unit = printable(root["unit"].get<std::string>());
        }
        file.transfer = time(root, "", "transfer").value_or(0);
        file.transfer_per_mib = time(root, "", "transfer_per_mib").value_or(0);
        check_object(root["modules"], "modules");
        for (const auto& [module, times] : root["modules"].items()) file.modules.push_back(read_module(module, times));
        if (file.modules.empty()) refuse("modules", "is empty (expected at least one submodule with its times)");
        const auto is_idle = [](const ModuleTimes& times) { return times.forward == 0; };
        if (std::all_of(file.modules.begin(), file.modules.end(), is_idle)) refuse("modules", "takes no time at all");
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

bool is_inside(const std::string& module, const std::string& outer) {
    return outer.empty() || module == outer || module.starts_with(outer + '.');
}

/// The listed submodule that an op belongs to: the one with the longest name; -1 for none.
int owner_of(const GraphOp& op, const std::vector<ModuleTimes>& modules) {
    int owner = -1;
    for (size_t i = 0; i < modules.size(); ++i) {
        if (!is_inside(op.module, modules[i].module)) continue;
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
                    printable(plan.pipeline.cost_file) +
                        (exists ? " has times of '" + printable(module) + "', which computes nothing of its own"
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

}  // namespace

CostFile parse_cost_file(const std::string& text, const std::string& name) {
    return CostFileReader(printable(name)).read(text);
}

CostFile read_cost_file(const Plan& plan) {
    const std::string& path = plan.pipeline.cost_file;
    return parse_cost_file(read_text_file(path, kMostBytes), path);
}

CostModel measured_costs(const CostFile& file, const Graph& graph, const CostModel& estimate, const Plan& plan) {
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
        const OpCosts &sum = owners.estimates[owner], total = costs_of(file.modules[owner], sum);
        const int count = owners.counts[owner];
        model.ops.push_back({share_of(total.forward, part.forward, sum.forward, count),
                             share_of(total.backward, part.backward, sum.backward, count),
                             share_of(total.input_gradient, part.input_gradient, sum.input_gradient, count),
                             share_of(total.weight_gradient, part.weight_gradient, sum.weight_gradient, count)});
        ++num_measured;
    }
    model.transfer = file.transfer;
    model.transfer_of_a_byte = file.transfer_per_mib / kMebibyte;
    model.unit = file.unit;
    model.source = printable(plan.pipeline.cost_file) + " (digest " + file.digest + "), " +
                   std::to_string(num_measured) + " of " + std::to_string(graph.ops.size()) +
                   " ops, the others by FLOPs";
    return model;
}

}  // namespace vpp
