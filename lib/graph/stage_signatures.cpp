// What the tables of stages say, held against the signatures of their modules.
#include <algorithm>
#include <map>
#include <set>

#include "base/suggest.hpp"
#include "base/units.hpp"
#include "graph/jit_stages.hpp"

namespace vpp {

namespace {

using Types = std::vector<c10::TypePtr>;

/// What a call returns, a tuple taken apart.
Types parts_of(const c10::TypePtr& type) {
    const auto tuple = type->cast<c10::TupleType>();
    return tuple ? tuple->elements().vec() : Types{type};
}

/// "forward(Tensor x, int n=...)", without self.
std::string signature_text(const c10::FunctionSchema& schema) {
    std::string text;
    for (size_t i = 1; i < schema.arguments().size(); ++i) {
        const c10::Argument& argument = schema.arguments()[i];
        text += (i > 1 ? ", " : "") + argument.type()->str() + ' ' + argument.name() +
                (argument.default_value() ? "=..." : "");
    }
    return "forward(" + text + ")";
}

class SignatureChecker {
  public:
    SignatureChecker(const StageCalls& calls, const StageTables& tables, std::vector<Problem>& problems)
        : calls_(calls), tables_(tables), problems_(problems) {}

    void check() {
        for (size_t stage = 0; stage < calls_.size(); ++stage) check_stage(stage);
        if (problems_.empty()) check_use();
    }

  private:
    /// Left for the end: where an input is mistyped, its maker only seems to be unused.
    void check_use() {
        std::set<std::string> taken;
        for (const StagePlan& plan : tables_.stages) taken.insert(plan.inputs.begin(), plan.inputs.end());
        for (size_t stage = 0; stage + 1 < tables_.stages.size(); ++stage) {
            const StagePlan& plan = tables_.stages[stage];
            const bool used =
                std::ranges::any_of(plan.outputs, [&](const std::string& output) { return taken.contains(output); });
            if (!used) add(stage, "outputs", "no stage takes an output of '" + plan.name + "'; leave the stage out");
        }
    }

    void check_stage(size_t stage) {
        const StagePlan& plan = tables_.stages[stage];
        Types types;
        for (size_t i = 0; i < plan.inputs.size(); ++i) types.push_back(type_of_input(stage, i));
        if (calls_[stage].size() < std::max<size_t>(1, plan.modules.size())) {
            for (const std::string& output : plan.outputs) outputs_[output] = nullptr;
            return;
        }
        for (size_t call = 0; call < calls_[stage].size(); ++call) {
            check_call(stage, call, types);
            types = {result_of(calls_[stage][call])};
        }
        check_outputs(stage, types.front());
    }

    static const c10::FunctionSchema& schema_of(const StageCall& call) {
        return call.module.get_method("forward").function().getSchema();
    }

    static c10::TypePtr result_of(const StageCall& call) { return schema_of(call).returns()[0].type(); }

    c10::TypePtr type_of_input(size_t stage, size_t index) {
        const std::string& name = tables_.stages[stage].inputs[index];
        const auto made = outputs_.find(name);
        if (made != outputs_.end()) return made->second;
        if (tables_.fields.find(name) >= 0) return c10::TensorType::get();
        std::vector<std::string> known;
        for (const Field& field : tables_.fields.fields) known.push_back(field.name);
        for (const auto& [output, type] : outputs_) known.push_back(output);
        std::string text;
        for (const std::string& word : known) text += (text.empty() ? "" : ", ") + word;
        add(stage, "inputs[" + std::to_string(index) + "]",
            "the input '" + name + "' is neither a data field nor an output of an earlier stage (there are: " + text +
                ")" + did_you_mean(name, known));
        return nullptr;
    }

    /// `types`: of what is handed over; null where it is not known.
    void check_call(size_t stage, size_t call, const Types& types) {
        const StageCall& called = calls_[stage][call];
        const c10::FunctionSchema& schema = schema_of(called);
        const auto& arguments = schema.arguments();
        const size_t expected = arguments.size() - 1;
        const auto needed = static_cast<size_t>(std::count_if(
            arguments.begin() + 1, arguments.end(), [](const c10::Argument& a) { return !a.default_value(); }));
        const std::string key = call == 0 ? "inputs" : "modules[" + std::to_string(call) + "]";
        if (types.size() > expected || types.size() < needed) {
            const std::string range = needed == expected ? std::to_string(expected)
                                                         : std::to_string(needed) + " to " + std::to_string(expected);
            add(stage, key,
                subject(stage, called) + " takes another number of inputs (got " + std::to_string(types.size()) +
                    ", expected " + range + " for " + signature_text(schema) + ")");
            return;
        }
        for (size_t i = 0; i < types.size(); ++i) {
            const c10::TypePtr& wanted = arguments[i + 1].type();
            if (!types[i] || types[i]->isSubtypeOf(*wanted) || takes_only_part(types[i], wanted)) continue;
            const std::string from = call == 0 ? "'" + tables_.stages[stage].inputs[i] + "'"
                                               : "what '" + calls_[stage][call - 1].fqn + "' returns";
            add(stage, call == 0 ? "inputs[" + std::to_string(i) + "]" : key,
                subject(stage, called) + " cannot take " + from + " as '" + arguments[i + 1].name() + "' (got " +
                    types[i]->str() + ", expected " + wanted->str() + " for " + signature_text(schema) + ")");
        }
    }

    std::string subject(size_t stage, const StageCall& call) const {
        const std::string& name = tables_.stages[stage].name;
        return "the stage '" + name + "'" + (call.fqn == name ? "" : " with '" + call.fqn + "'");
    }

    void check_outputs(size_t stage, const c10::TypePtr& result) {
        const StagePlan& plan = tables_.stages[stage];
        const Types parts = plan.outputs.size() == 1 ? Types{result} : parts_of(result);
        if (parts.size() != plan.outputs.size()) {
            add(stage, "outputs",
                "the stage '" + plan.name + "' has another number of outputs (got " +
                    counted_text(static_cast<int64_t>(plan.outputs.size()), "name") + ", forward returns " +
                    result->str() + ": " + std::to_string(parts.size()) + ")");
        }
        for (size_t i = 0; i < plan.outputs.size(); ++i) {
            if (tables_.fields.find(plan.outputs[i]) >= 0) {
                add(stage, "outputs[" + std::to_string(i) + "]",
                    "the output '" + plan.outputs[i] + "' has the name of a data field; give it another");
            }
            outputs_[plan.outputs[i]] = parts.size() == plan.outputs.size() ? parts[i] : nullptr;
        }
    }

    void add(size_t stage, const std::string& part, const std::string& message) {
        problems_.push_back({message, tables_.where("pipeline.stage[" + std::to_string(stage) + "]." + part)});
    }

    const StageCalls& calls_;
    const StageTables& tables_;
    std::map<std::string, c10::TypePtr> outputs_;  ///< of the stages so far; null where it is not known
    std::vector<Problem>& problems_;
};

}  // namespace

bool takes_only_part(const c10::TypePtr& given, const c10::TypePtr& wanted) {
    const auto tuple = given->cast<c10::TupleType>();
    const bool has_one = tuple && tuple->elements().size() == 1;
    return has_one && !given->isSubtypeOf(*wanted) && tuple->elements()[0]->isSubtypeOf(*wanted);
}

void check_signatures(const StageCalls& calls, const StageTables& tables, std::vector<Problem>& problems) {
    SignatureChecker(calls, tables, problems).check();
}

}  // namespace vpp
