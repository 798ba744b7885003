// Units: which ops belong together.
#include <algorithm>
#include <map>
#include <set>

#include "base/glob.hpp"
#include "graph/split.hpp"

namespace vpp {

namespace {

bool lies_in(const std::string& op_module, const std::string& unit) {
    return op_module.starts_with(unit) && (op_module.size() == unit.size() || op_module[unit.size()] == '.');
}

std::string parent_of(const std::string& name) {
    const size_t dot = name.rfind('.');
    return dot == std::string::npos ? "" : name.substr(0, dot);
}

bool has_ops(const Graph& graph, const std::string& module) {
    return std::any_of(graph.ops.begin(), graph.ops.end(),
                       [&](const GraphOp& op) { return lies_in(op.module, module); });
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
    std::map<std::pair<std::string, std::string>, std::vector<std::string>> families;
    for (const GraphModule& module : graph.modules) {
        if (!module.name.empty() && has_ops(graph, module.name)) {
            families[{parent_of(module.name), module.class_name}].push_back(module.name);
        }
    }
    std::set<std::string> repeated;
    for (const auto& [family, names] : families) {
        if (names.size() > 1) repeated.insert(names.begin(), names.end());
    }
    std::vector<std::string> outermost;
    for (const std::string& name : repeated) {
        const bool inside = std::any_of(repeated.begin(), repeated.end(), [&](const std::string& other) {
            return other != name && lies_in(name, other);
        });
        if (!inside) outermost.push_back(name);
    }
    return outermost;
}

}  // namespace

Units find_units(const Graph& graph, const std::vector<std::string>& listed) {
    const std::vector<std::string> modules = listed.empty() ? repeated_siblings(graph) : listed_units(graph, listed);
    Units units;
    units.unit_of.assign(graph.ops.size(), -1);
    std::string last;
    for (size_t i = 0; i < graph.ops.size(); ++i) {
        // The outermost of the modules that hold the op.
        const std::string* owner = nullptr;
        for (const std::string& module : modules) {
            if (lies_in(graph.ops[i].module, module) && (!owner || module.size() < owner->size())) owner = &module;
        }
        if (owner) {
            if (units.names.empty() || last != *owner) units.names.push_back(*owner);
            units.unit_of[i] = static_cast<int>(units.names.size()) - 1;
        }
        // An op of nobody between two ops of one unit (a size, a constant made late) does not end the unit's run.
        if (owner) last = *owner;
    }
    return units;
}

}  // namespace vpp
