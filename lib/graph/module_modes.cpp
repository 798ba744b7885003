#include "graph/module_modes.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/few.hpp"
#include "base/glob.hpp"
#include "graph/graph.hpp"

namespace vpp {

using torch::jit::Module;

namespace {

bool is_in_train_mode(const Module& module) {
    return !module.hasattr("training") || module.attr("training").toBool();
}

void add_in_eval_mode(const Module& module, const std::string& prefix, std::vector<std::string>& names) {
    for (const auto& child : module.named_children()) {
        if (is_in_train_mode(child.value)) {
            add_in_eval_mode(child.value, prefix + child.name + '.', names);
        } else {
            names.push_back(prefix + child.name);
        }
    }
}

bool looks_at_mode(const JitGraph& jit, const std::string& module) {
    return std::ranges::any_of(jit.reads_training, [&](const std::string& name) { return lies_in(name, module); });
}

/// Whether a glob matches a module, or one that it lies in.
bool is_named(const std::string& module, const std::string& glob) {
    if (glob_matches(glob, module)) return true;
    const size_t dot = module.rfind('.');
    return dot != std::string::npos && is_named(module.substr(0, dot), glob);
}

bool any_names(const std::vector<std::string>& globs, const std::string& module) {
    return std::ranges::any_of(globs, [&](const std::string& glob) { return is_named(module, glob); });
}

}  // namespace

std::vector<std::string> submodules_in_eval_mode(const Module& root, bool is_joined) {
    std::vector<std::string> names;
    if (!is_joined) {
        if (is_in_train_mode(root)) add_in_eval_mode(root, "", names);
        return names;
    }
    for (const auto& stage : root.named_children()) {
        if (is_in_train_mode(stage.value)) add_in_eval_mode(stage.value, stage.name + '.', names);
    }
    return names;
}

void set_module_modes(Module& root, bool training, const std::vector<std::string>& eval_modules,
                      const KeyPosition& where) {
    root.train(training);
    std::vector<bool> is_used(eval_modules.size());
    std::string example;
    for (const auto& module : root.named_modules()) {
        if (module.name.empty()) continue;
        example = example.empty() ? module.name : example;
        for (size_t i = 0; i < eval_modules.size(); ++i) {
            if (!glob_matches(eval_modules[i], module.name)) continue;
            is_used[i] = true;
            Module(module.value).eval();
        }
    }
    std::vector<Problem> problems;
    for (size_t i = 0; i < eval_modules.size(); ++i) {
        if (is_used[i]) continue;
        problems.push_back(
            {"model.eval_modules: no submodule matches '" + printable(eval_modules[i]) + "'" +
                 (example.empty() ? "; the model has none" : "; names look like '" + printable(example) + "'"),
             where("model.eval_modules")});
    }
    if (!problems.empty()) throw Error(ErrorKind::Plan, std::move(problems));
}

void add_module_mode_notes(JitGraph& jit, const std::vector<std::string>& in_eval_mode,
                           const std::vector<std::string>& eval_modules) {
    std::vector<std::string> changed;
    for (const std::string& module : in_eval_mode) {
        if (!any_names(eval_modules, module) && looks_at_mode(jit, module)) changed.push_back(printable(module));
    }
    if (!changed.empty()) {
        jit.notes.push_back("in eval mode in the model file, but trained in train mode, as behind model.train(): " +
                            few_text(changed, 6) + "; what shall stay in eval mode goes into model.eval_modules");
    }
    for (const std::string& glob : eval_modules) {
        const auto is_meant = [&](const std::string& module) { return is_named(module, glob); };
        if (std::ranges::any_of(jit.reads_training, is_meant)) continue;
        jit.notes.push_back("model.eval_modules: nothing that '" + printable(glob) +
                            "' matches looks at its mode (a trace never does), so that it changes nothing");
    }
}

}  // namespace vpp
