#include "plan/stage_rules.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "plan/value.hpp"

namespace vpp {

namespace {

std::string table(size_t stage) {
    return "pipeline.stage[" + std::to_string(stage) + ']';
}

std::string entry(const std::string& key, size_t index) {
    return key + '[' + std::to_string(index) + ']';
}

/// Whether a text can be one part of an FQN.
bool is_identifier(const std::string& text) {
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    return letter(text[0]) && std::ranges::all_of(text, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

class TableRules {
  public:
    TableRules(const Plan& plan, Findings& findings)
        : plan_(plan), stages_(plan.pipeline.stages), findings_(findings) {}

    void check() {
        check_other_keys();
        for (size_t stage = 0; stage < stages_.size(); ++stage) {
            check_name(stage);
            check_source(stage);
            check_modules(stage);
            check_outputs(stage);
        }
        for (size_t stage = 0; stage < stages_.size(); ++stage) check_inputs(stage);
        check_loss();
    }

  private:
    /// Keys that say what the tables say.
    void check_other_keys() {
        const auto refuse = [&](bool is_set, const char* key, const char* instead) {
            if (is_set) findings_.add(key, std::string(key) + " has no meaning in mode = \"MANUAL_EAGER\": " + instead);
        };
        const char* const kBorders = "the stages are those of [[pipeline.stage]]; leave it out";
        refuse(plan_.positions.contains("pipeline.split_method"), "pipeline.split_method", kBorders);
        refuse(!plan_.pipeline.split_points.empty(), "pipeline.split_points", kBorders);
        refuse(plan_.pipeline.choose_virtual_chunks, "pipeline.virtual_chunks",
               "the number of [[pipeline.stage]] tables says how many, so write it instead of \"auto\"");
        refuse(plan_.pipeline.uniform_split_ops, "pipeline.uniform_split_ops", kBorders);
        const bool recomputed = plan_.pipeline.recompute.what == "units";  // then they name the segments
        refuse(!recomputed && !plan_.pipeline.smallest_unsplittable_units.empty(),
               "pipeline.smallest_unsplittable_units", kBorders);
        refuse(!plan_.model.inputs.empty(), "model.inputs", "each stage has its inputs; leave it out");
        const bool wanted = std::ranges::any_of(stages_, [](const StagePlan& stage) { return !stage.modules.empty(); });
        refuse(!wanted && !plan_.model.file.empty(), "model.file", "every stage has a file of its own; leave it out");
        refuse(!wanted && !plan_.model.eval_file.empty(), "model.eval_file",
               "every stage has a file of its own; give their tables an eval_file");
        if (wanted && plan_.model.file.empty()) {
            findings_.add("pipeline.stage", "pipeline.stage.modules are submodules of model.file, which is missing");
        }
    }

    void check_name(size_t stage) {
        const std::string& name = stages_[stage].name;
        const std::string key = table(stage) + ".name";
        if (!is_identifier(name)) {
            findings_.add(
                key, key + " must be letters, digits and '_', not begun by a digit (got " + toml_quoted(name) + ')');
        } else if (name == "loss") {
            findings_.add(key, key + " is the name of what [loss] appends; choose another");
        } else if (!names_.insert(name).second) {
            findings_.add(key, "two stages are named '" + name + '\'');
        }
    }

    void check_source(size_t stage) {
        const bool file = !stages_[stage].file.empty(), modules = !stages_[stage].modules.empty();
        if (!file && !stages_[stage].eval_file.empty()) {
            findings_.add(table(stage) + ".eval_file", "the stage '" + stages_[stage].name +
                                                           "' has an eval_file and no file; submodules of the model "
                                                           "are evaluated from model.eval_file");
        }
        if (file != modules) return;
        findings_.add(table(stage) + (file ? ".modules" : ""),
                      "the stage '" + stages_[stage].name + "' needs " +
                          (file ? "file or modules, not both" : "a file, or modules of model.file"));
    }

    /// Submodules overlap when one is, or is inside, the other.
    void check_modules(size_t stage) {
        const auto overlap = [](const std::string& a, const std::string& b) {
            return a == b || a.starts_with(b + '.') || b.starts_with(a + '.');
        };
        for (size_t i = 0; i < stages_[stage].modules.size(); ++i) {
            const std::string& module = stages_[stage].modules[i];
            for (const auto& [other, owner] : modules_) {
                if (!overlap(module, other)) continue;
                findings_.add(entry(table(stage) + ".modules", i),
                              "the submodule '" + module + "' is in the stage '" + owner + "' already" +
                                  (module == other ? "" : " (as '" + other + "')"));
                break;
            }
            modules_.emplace(module, stages_[stage].name);
        }
    }

    void check_outputs(size_t stage) {
        const std::string key = table(stage) + ".outputs";
        if (stages_[stage].outputs.empty()) findings_.add(key, key + " is empty; name what the stage returns");
        for (size_t i = 0; i < stages_[stage].outputs.size(); ++i) {
            const std::string& output = stages_[stage].outputs[i];
            const auto [maker, is_new] = makers_.emplace(output, stage);
            if (is_new) continue;
            findings_.add(entry(key, i), "the output '" + output + "' is made by the stage '" +
                                             stages_[maker->second].name + "' already; give it another name");
        }
    }

    void check_inputs(size_t stage) {
        const std::string key = table(stage) + ".inputs";
        if (stages_[stage].inputs.empty()) {
            findings_.add(key, key + " is empty; name data fields or outputs of earlier stages");
        }
        for (size_t i = 0; i < stages_[stage].inputs.size(); ++i) {
            const std::string& input = stages_[stage].inputs[i];
            const auto maker = makers_.find(input);
            if (maker == makers_.end() || maker->second < stage) continue;
            const std::string& name = stages_[maker->second].name;
            findings_.add(entry(key, i), "the input '" + input + "' is made by the stage '" + name +
                                             (maker->second == stage ? "' itself" : "', which comes later") +
                                             "; a stage takes data fields and outputs of earlier stages");
        }
    }

    /// One name may be that of a tuple, whose parts the model tells.
    void check_loss() {
        if (stages_.empty()) return;
        const auto count = static_cast<int>(stages_.back().outputs.size());
        const int index = plan_.loss ? plan_.loss->input : plan_.model.loss_output;
        if (count <= 1 || index < count) return;
        const std::string key = plan_.loss ? "loss.input" : "model.loss_output";
        findings_.add(key, key + " counts the outputs of the last stage from 0 (got " + std::to_string(index) + ", '" +
                               stages_.back().name + "' has " + std::to_string(count) + ')');
    }

    const Plan& plan_;
    const std::vector<StagePlan>& stages_;
    Findings& findings_;
    std::set<std::string> names_;
    std::map<std::string, std::string> modules_;  ///< submodule -> stage that lists it
    std::map<std::string, size_t> makers_;        ///< output -> stage
};

}  // namespace

void check_stage_tables(const Plan& plan, Findings& findings) {
    const bool manual = plan.pipeline.is_by_hand();
    const bool tables = !plan.pipeline.stages.empty();
    if (manual && tables) return TableRules(plan, findings).check();
    if (manual) {
        findings.add("pipeline.mode", "mode = \"MANUAL_EAGER\" needs [[pipeline.stage]] tables, one for each stage");
    } else if (tables) {
        findings.add("pipeline.stage", "[[pipeline.stage]] tables need mode = \"MANUAL_EAGER\" (got " +
                                           toml_quoted(plan.pipeline.mode) + ')');
    }
}

void check_stage_count(const Plan& plan, Findings& findings) {
    if (!plan.pipeline.is_by_hand()) return;
    const auto count = static_cast<int64_t>(plan.pipeline.stages.size());
    const int64_t expected = int64_t{*plan.mesh.pp} * plan.pipeline.virtual_chunks;
    if (count == expected) return;
    findings.add("pipeline.stage", "mode = \"MANUAL_EAGER\" needs another number of [[pipeline.stage]] tables (got " +
                                       std::to_string(count) + ", expected " + std::to_string(expected) + " = pp " +
                                       std::to_string(*plan.mesh.pp) + " x virtual_chunks " +
                                       std::to_string(plan.pipeline.virtual_chunks) + ')');
}

}  // namespace vpp
