// Units: which ops belong together.
#include <algorithm>
#include <map>
#include <unordered_set>

#include "base/error.hpp"
#include "base/glob.hpp"
#include "base/suggest.hpp"
#include "graph/split.hpp"

namespace vpp {

namespace {

std::string parent_of(const std::string& name) {
    const size_t dot = name.rfind('.');
    return dot == std::string::npos ? "" : name.substr(0, dot);
}

/// The outermost of the modules that hold `module`, or that is it; empty when none does.
std::string outermost_of(const std::unordered_set<std::string>& modules, const std::string& module) {
    for (size_t dot = module.find('.'); dot != std::string::npos; dot = module.find('.', dot + 1)) {
        const auto found = modules.find(module.substr(0, dot));
        if (found != modules.end()) return *found;
    }
    return modules.contains(module) ? module : "";
}

/// The modules that have ops, their own or those of a submodule.
std::unordered_set<std::string> modules_with_ops(const Graph& graph) {
    std::unordered_set<std::string> found;
    for (const GraphOp& op : graph.ops) {
        for (std::string name = op.module; !name.empty() && found.insert(name).second;) name = parent_of(name);
    }
    return found;
}

bool matches(const GraphModule& module, const std::string& pattern) {
    return glob_matches(pattern, module.name) || glob_matches(pattern, module.class_name);
}

std::vector<std::string> listed_units(const Graph& graph, const std::vector<std::string>& listed) {
    std::vector<std::string> names;
    for (const GraphModule& module : graph.modules) {
        const bool wanted = std::any_of(listed.begin(), listed.end(),
                                        [&](const std::string& pattern) { return matches(module, pattern); });
        if (wanted && !module.name.empty()) names.push_back(module.name);
    }
    return names;
}

/// Submodules that have a sibling of the same class, the outermost ones.
std::vector<std::string> repeated_siblings(const Graph& graph) {
    const std::unordered_set<std::string> with_ops = modules_with_ops(graph);
    std::map<std::pair<std::string, std::string>, std::vector<std::string>> families;
    for (const GraphModule& module : graph.modules) {
        if (with_ops.contains(module.name)) {
            families[{parent_of(module.name), module.class_name}].push_back(module.name);
        }
    }
    std::unordered_set<std::string> repeated;
    for (const auto& [family, names] : families) {
        if (names.size() > 1) repeated.insert(names.begin(), names.end());
    }
    std::vector<std::string> outermost;
    for (const std::string& name : repeated) {
        if (outermost_of(repeated, name) == name) outermost.push_back(name);
    }
    return outermost;
}

}  // namespace

Units find_units(const Graph& graph, const std::vector<std::string>& listed) {
    const std::vector<std::string> modules = listed.empty() ? repeated_siblings(graph) : listed_units(graph, listed);
    const std::unordered_set<std::string> names(modules.begin(), modules.end());
    Units units;
    units.unit_of.assign(graph.ops.size(), -1);
    std::string last;
    for (size_t i = 0; i < graph.ops.size(); ++i) {
        const std::string owner = outermost_of(names, graph.ops[i].module);
        // An op of nobody between two ops of one unit (a size, a constant made late) does not end the unit's run.
        if (owner.empty()) continue;
        if (units.names.empty() || last != owner) units.names.push_back(owner);
        units.unit_of[i] = static_cast<int>(units.names.size()) - 1;
        last = owner;
    }
    return units;
}

void check_units(const Graph& graph, const Plan& plan, const std::string& key, const std::vector<std::string>& listed) {
    std::vector<std::string> names;
    for (const GraphModule& module : graph.modules) {
        if (module.name.empty()) continue;
        names.push_back(module.name);
        names.push_back(module.class_name);
    }
    for (size_t i = 0; i < listed.size(); ++i) {
        if (!listed_units(graph, {listed[i]}).empty()) continue;
        throw Error(ErrorKind::Plan,
                    key + " names '" + printable(listed[i]) + "', but the model has no such submodule" +
                        did_you_mean(listed[i], names),
                    plan.where(key + "[" + std::to_string(i) + "]"));
    }
}

}  // namespace vpp
