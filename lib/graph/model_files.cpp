#include "graph/model_files.hpp"

#include <algorithm>
#include <filesystem>

namespace vpp {

namespace {

/// Opens the files of the stages; all that fail are said together.
std::vector<std::shared_ptr<const Archive>> open_stage_files(const Plan& plan) {
    std::vector<std::shared_ptr<const Archive>> archives;
    std::vector<Problem> problems;
    ErrorKind kind = ErrorKind::MissingInput;
    for (size_t stage = 0; stage < plan.pipeline.stages.size(); ++stage) {
        const std::string& file = plan.pipeline.stages[stage].file;
        archives.emplace_back();
        if (file.empty()) continue;
        try {
            archives.back() = std::make_shared<const Archive>(file);
        } catch (const Error& error) {
            if (problems.empty()) kind = error.kind();
            problems.push_back(
                {error.problems().front().message, plan.where("pipeline.stage[" + std::to_string(stage) + "].file")});
        }
    }
    if (!problems.empty()) throw Error(kind, std::move(problems));
    return archives;
}

}  // namespace

ModelFiles open_model_files(const Plan& plan) {
    ModelFiles files;
    if (!plan.model.file.empty()) files.model = std::make_shared<const Archive>(plan.model.file);
    files.stages = open_stage_files(plan);
    return files;
}

std::string file_names(const Plan& plan) {
    std::vector<std::string> names;
    const auto add = [&](const std::string& file) {
        const std::string name = std::filesystem::path(file).lexically_normal().string();
        if (!file.empty() && std::ranges::find(names, name) == names.end()) names.push_back(name);
    };
    add(plan.model.file);
    for (const StagePlan& stage : plan.pipeline.stages) add(stage.file);
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
}

}  // namespace vpp
