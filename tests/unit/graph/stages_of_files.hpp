#pragma once
// Stages by hand for the tests: a file each, loaded and joined.
#include <memory>
#include <string>
#include <vector>

#include "unit/graph/models.hpp"

namespace vpp::test {

/// A stage with a file of its own, or with submodules of the one model.
inline StagePlan file_stage(std::string name, std::vector<std::string> inputs, std::vector<std::string> outputs) {
    return {name, name + ".pt", {}, std::move(inputs), std::move(outputs)};
}
inline StagePlan module_stage(std::string name, std::vector<std::string> modules, std::vector<std::string> inputs,
                              std::vector<std::string> outputs) {
    return {std::move(name), "", std::move(modules), std::move(inputs), std::move(outputs)};
}

/// What is loaded: one model, if stages name its submodules, and the stages' own files.
struct StageFiles {
    std::vector<ModuleSpec> model = {};   ///< none or one
    std::vector<ModuleSpec> stages = {};  ///< for the stages with a file, in their order

    ModelFiles save_for(const std::vector<StagePlan>& plan) const {
        ModelFiles files;
        if (!model.empty()) files.model = std::make_shared<const Archive>(save(model.front()));
        size_t next = 0;
        for (const StagePlan& stage : plan) {
            files.stages.emplace_back();
            if (!stage.file.empty()) files.stages.back() = std::make_shared<const Archive>(save(stages.at(next++)));
        }
        return files;
    }
};

/// Errors are at "KEY:1:1".
inline TorchScriptOptions stage_options(std::vector<Field> fields, std::vector<StagePlan> stages) {
    TorchScriptOptions options = options_for(std::move(fields));
    options.stages = std::move(stages);
    options.where = [](const std::string& key) { return SourcePosition{key, 1, 1, ""}; };
    return options;
}

inline LoadedModel load_stages(const StageFiles& files, const TorchScriptOptions& options) {
    return load_torchscript(files.save_for(options.stages), options);
}

}  // namespace vpp::test
