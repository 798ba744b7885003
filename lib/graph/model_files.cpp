#include "graph/model_files.hpp"

#include <algorithm>
#include <filesystem>

#include "graph/trial_load.hpp"

namespace vpp {

namespace {

using File = std::shared_ptr<const Archive>;

/// Opens the files of the stages, or with `eval_file` their twins for evaluation; all that fail are said together.
std::vector<File> open_stage_files(const Plan& plan, std::string StagePlan::*member, const char* key) {
    std::vector<File> archives;
    std::vector<Problem> problems;
    ErrorKind kind = ErrorKind::MissingInput;
    for (size_t stage = 0; stage < plan.pipeline.stages.size(); ++stage) {
        const std::string& file = plan.pipeline.stages[stage].*member;
        archives.emplace_back();
        if (file.empty()) continue;
        try {
            archives.back() = std::make_shared<const Archive>(file);
        } catch (const Error& error) {
            if (problems.empty()) kind = error.kind();
            problems.push_back(
                {error.problems().front().message, plan.where("pipeline.stage[" + std::to_string(stage) + "]." + key)});
        }
    }
    if (!problems.empty()) throw Error(kind, std::move(problems));
    return archives;
}

/// Null where no file is for evaluation alone. What has no twin is the file of training.
std::shared_ptr<const ModelFiles> open_evaluation_files(const Plan& plan, const ModelFiles& training) {
    ModelFiles files;
    if (!plan.model.eval_file.empty()) files.model = std::make_shared<const Archive>(plan.model.eval_file);
    files.stages = open_stage_files(plan, &StagePlan::eval_file, "eval_file");
    if (!files.model && std::ranges::none_of(files.stages, [](const File& file) { return file != nullptr; })) {
        return nullptr;
    }
    if (!files.model) files.model = training.model;
    for (size_t stage = 0; stage < files.stages.size(); ++stage) {
        if (!files.stages[stage]) files.stages[stage] = training.stages[stage];
    }
    return std::make_shared<const ModelFiles>(std::move(files));
}

/// "a.pt, b.pt": each once, in the order of the first.
std::string listed_once(const std::vector<std::string>& names) {
    std::string text;
    for (size_t i = 0; i < names.size(); ++i) {
        const auto here = names.begin() + static_cast<std::ptrdiff_t>(i);
        if (std::find(names.begin(), here, *here) == here) text += (text.empty() ? "" : ", ") + *here;
    }
    return text;
}

}  // namespace

const File& ModelFiles::file_of(int stage) const {
    const bool has_own = stage >= 0 && stages[static_cast<size_t>(stage)];
    return has_own ? stages[static_cast<size_t>(stage)] : model;
}

ModelFiles open_model_files(const Plan& plan) {
    ModelFiles files;
    if (!plan.model.file.empty()) files.model = std::make_shared<const Archive>(plan.model.file);
    files.stages = open_stage_files(plan, &StagePlan::file, "file");
    files.evaluation = open_evaluation_files(plan, files);
    return files;
}

std::string file_names(const Plan& plan) {
    std::vector<std::string> names;
    for (const TrialFile& file : trial_files(plan)) {
        names.push_back(std::filesystem::path(file.path).lexically_normal().string());
    }
    return listed_once(names);
}

std::string file_names(const ModelFiles& files) {
    std::vector<std::string> names;
    const auto add = [&](const File& file) {
        if (file) names.push_back(file->path().lexically_normal().string());
    };
    add(files.model);
    std::ranges::for_each(files.stages, add);
    return listed_once(names);
}

}  // namespace vpp
