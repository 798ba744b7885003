#include "graph/jit_stages.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/few.hpp"
#include "base/suggest.hpp"
#include "graph/stage_borders.hpp"

namespace vpp {

using torch::jit::Module;
using torch::jit::Node;
using torch::jit::Value;
namespace prim = torch::jit::prim;
namespace attr = torch::jit::attr;

namespace {

std::string key_of(size_t stage, const std::string& part) {
    return "pipeline.stage[" + std::to_string(stage) + "]." + part;
}

std::string entry_of(size_t stage, const std::string& part, size_t index) {
    return key_of(stage, part) + '[' + std::to_string(index) + ']';
}

/// Finds the submodules that stages name.
class ModuleFinder {
  public:
    ModuleFinder(const std::optional<Module>& model, const StageTables& tables, std::vector<Problem>& problems)
        : tables_(tables), problems_(problems) {
        if (!model) return;
        for (const auto& named : model->named_modules()) {
            if (!named.name.empty()) modules_.emplace(named.name, named.value);
        }
        for (const auto& [name, module] : modules_) names_.push_back(name);
    }

    std::vector<StageCall> calls_of(size_t stage) {
        std::vector<StageCall> calls;
        const std::vector<std::string>& listed = tables_.stages[stage].modules;
        for (size_t i = 0; i < listed.size(); ++i) {
            const auto found = modules_.find(listed[i]);
            if (found == modules_.end()) {
                add(stage, i, "the model has no submodule '" + listed[i] + "'" + did_you_mean(listed[i], names_));
            } else if (!found->second.find_method("forward")) {
                const bool has_parts = found->second.children().size() > 0;
                add(stage, i,
                    "the submodule '" + listed[i] + "' has " + no_forward_text(found->second) +
                        (has_parts ? "; name what is in it" : ""));
            } else {
                calls.push_back({listed[i], found->second});
            }
        }
        return calls;
    }

  private:
    void add(size_t stage, size_t index, const std::string& message) {
        problems_.push_back({message, tables_.where(entry_of(stage, "modules", index))});
    }

    const StageTables& tables_;
    std::vector<Problem>& problems_;
    std::map<std::string, Module> modules_;
    std::vector<std::string> names_;
};

/// Writes the forward of the joined model.
class Joiner {
  public:
    Joiner(JitGraph& jit, const Module& root) : jit_(jit), root_(root), graph_(*jit.graph) {
        self_ = graph_.addInput("self");
        self_->setType(root.type());
    }

    void add_stage(const StagePlan& stage, const std::vector<StageCall>& calls) {
        std::vector<Value*> values;
        for (const std::string& input : stage.inputs) values.push_back(value_of(input));
        for (const StageCall& call : calls) values = {insert_call(call, std::move(values))};
        returned_ = values.front();
        const std::vector<Value*> parts = stage.outputs.size() == 1 ? std::vector{returned_} : parts_of(returned_);
        for (size_t i = 0; i < parts.size(); ++i) {
            values_[stage.outputs[i]] = parts[i];
            outputs_.emplace_back(stage.outputs[i], parts.size() == 1 ? only_part(parts[i]) : parts[i]);
        }
    }

    /// Inlines; what the stages hand on keeps the plan's names where the modules have none.
    void finish() {
        graph_.registerOutput(returned_);
        for (const auto& [name, value] : outputs_) graph_.registerOutput(value);
        inline_calls(graph_, root_);
        for (size_t i = outputs_.size(); i > 0; --i) {
            name_value(graph_.outputs()[i], outputs_[i - 1].first);
            graph_.eraseOutput(i);
        }
    }

  private:
    /// A value by its name; one that no stage made is a data field.
    Value* value_of(const std::string& name) {
        const auto [known, is_new] = values_.emplace(name, nullptr);
        if (is_new) {
            known->second = graph_.addInput(value_name(name));
            known->second->setType(c10::TensorType::get());
            jit_.inputs.push_back({name, known->second});
        }
        return known->second;
    }

    Value* module_value(const std::string& fqn) {
        Value* module = self_;
        for (size_t begin = 0; begin <= fqn.size();) {
            const size_t end = std::min(fqn.find('.', begin), fqn.size());
            module = graph_.insertGetAttr(module, fqn.substr(begin, end - begin));
            begin = end + 1;
        }
        return module;
    }

    /// Arguments behind the values given get their defaults.
    Value* insert_call(const StageCall& call, std::vector<Value*> values) {
        refuse_hooks(call.module, "the module '" + call.fqn + "'");
        const c10::FunctionSchema& schema = call.module.get_method("forward").function().getSchema();
        for (size_t i = 0; i < values.size(); ++i) {
            if (takes_only_part(values[i]->type(), schema.arguments()[i + 1].type())) values[i] = only_part(values[i]);
        }
        values.insert(values.begin(), module_value(call.fqn));
        for (size_t i = values.size(); i < schema.arguments().size(); ++i) {
            values.push_back(graph_.insertConstant(*schema.arguments()[i].default_value()));
        }
        Node* node = graph_.insertNode(graph_.create(prim::CallMethod, values));
        node->s_(attr::name, "forward");
        node->output()->setType(schema.returns()[0].type());
        return node->output();
    }

    std::vector<Value*> parts_of(Value* value) {
        if (!value->type()->cast<c10::TupleType>()) return {value};
        return graph_.insertNode(graph_.createTupleUnpack(value))->outputs().vec();
    }

    /// Of a tuple of one part; all else as it is.
    Value* only_part(Value* value) {
        const auto tuple = value->type()->cast<c10::TupleType>();
        return tuple && tuple->elements().size() == 1 ? parts_of(value).front() : value;
    }

    /// A part of a tuple is named where it was made.
    static void name_value(Value* value, const std::string& name) {
        if (value->node()->kind() == prim::TupleUnpack &&
            value->node()->input()->node()->kind() == prim::TupleConstruct)
            value = value->node()->input()->node()->input(value->offset());
        if (!value->hasDebugName()) value->setDebugName(value_name(name));
    }

    JitGraph& jit_;
    const Module& root_;
    torch::jit::Graph& graph_;
    Value* self_ = nullptr;
    Value* returned_ = nullptr;
    std::vector<std::pair<std::string, Value*>> outputs_;  ///< of all stages so far; not after inlining
    std::map<std::string, Value*> values_;
};

/// Of names that are no problem, and may be many.
std::string listed(const std::vector<std::string>& names) {
    return few_names_text(names, 8);
}

std::vector<std::string> unused_outputs(const std::vector<StagePlan>& stages) {
    std::set<std::string> taken;
    for (const StagePlan& stage : stages) taken.insert(stage.inputs.begin(), stage.inputs.end());
    std::vector<std::string> unused;
    for (size_t stage = 0; stage + 1 < stages.size(); ++stage) {
        for (const std::string& output : stages[stage].outputs) {
            if (!taken.contains(output)) unused.push_back(output);
        }
    }
    return unused;
}

/// The outermost submodules that are not, and are not around or inside, what stages call; and parameters beside them.
std::vector<std::string> uncalled(const Module& model, const std::vector<StagePlan>& stages) {
    std::vector<std::string> called, unused;
    for (const StagePlan& stage : stages) called.insert(called.end(), stage.modules.begin(), stage.modules.end());
    const auto inside_any = [](const std::string& name, const std::vector<std::string>& outer) {
        return std::ranges::any_of(outer, [&](const std::string& other) { return lies_in(name, other); });
    };
    const auto holds_called = [&](const std::string& name) {
        return std::ranges::any_of(called, [&](const std::string& other) { return lies_in(other, name); });
    };
    for (const auto& named : model.named_modules()) {
        if (named.name.empty() || holds_called(named.name)) continue;
        if (!inside_any(named.name, called) && !inside_any(named.name, unused)) unused.push_back(named.name);
    }
    for (const auto& named : model.named_parameters()) {
        if (!inside_any(named.name, called) && !inside_any(named.name, unused)) unused.push_back(named.name);
    }
    return unused;
}

}  // namespace

Module make_root(StageModules& modules, const StageTables& tables, StageCalls& calls, std::vector<Problem>& problems) {
    Module root = modules.model ? *modules.model : Module("vpp.Stages");
    if (!modules.model) root.register_attribute("training", c10::BoolType::get(), true);
    ModuleFinder finder(modules.model, tables, problems);
    for (size_t stage = 0; stage < tables.stages.size(); ++stage) {
        const StagePlan& plan = tables.stages[stage];
        if (!modules.files[stage]) {
            calls.push_back(finder.calls_of(stage));
        } else if (root.hasattr(plan.name)) {
            problems.push_back({"the model has an attribute '" + plan.name + "' already; give the stage another name",
                                tables.where(key_of(stage, "name"))});
        } else {
            root.register_module(plan.name, *modules.files[stage]);
            calls.push_back({{plan.name, *modules.files[stage]}});
        }
    }
    return root;
}

void join_stages(JitGraph& jit, const Module& root, const StageCalls& calls, const StageTables& tables) {
    jit.stages = tables.stages;
    jit.graph = std::make_shared<torch::jit::Graph>();
    Joiner joiner(jit, root);
    for (size_t stage = 0; stage < calls.size(); ++stage) joiner.add_stage(tables.stages[stage], calls[stage]);
    joiner.finish();
}

std::vector<std::string> unused_parts(const StageModules& modules, const StageTables& tables) {
    std::vector<std::string> notes;
    if (const auto outputs = unused_outputs(tables.stages); !outputs.empty())
        notes.push_back("no stage takes the output" + std::string(outputs.size() == 1 ? " " : "s ") + listed(outputs));
    if (!modules.model) return notes;
    if (const auto names = uncalled(*modules.model, tables.stages); !names.empty())
        notes.push_back("no stage calls these parts of the model: " + listed(names));
    return notes;
}

}  // namespace vpp
