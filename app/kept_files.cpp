#include "app/kept_files.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/error.hpp"
#include "base/run_files.hpp"
#include "checkpoint/folder_names.hpp"
#include "checkpoint/weights_folder.hpp"
#include "data/data_files.hpp"
#include "graph/trial_load.hpp"
#include "report/sinks.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

bool is_inside(const std::string& file, const std::string& folder) {
    std::error_code error;
    const fs::path place = fs::weakly_canonical(fs::absolute(file), error);
    const fs::path around = fs::canonical(folder, error);
    return !error && std::ranges::mismatch(around, place).in1 == around.end();
}

bool is_same(const std::string& output, const std::string& kept) {
    std::error_code error;
    if (fs::is_directory(kept, error)) return is_inside(output, kept);
    return fs::equivalent(output, kept, error);
}

/// Names of weights, of an index of them, and of what makes a folder a checkpoint.
bool may_be_of_weights(const std::string& name) {
    return name.ends_with(".safetensors") || is_index_name(name) || name == kManifestFile;
}

/// The file that is named, and where that is a folder or an index what may have weights for it there.
std::vector<std::string> weights_at(const fs::path& path) {
    std::vector<std::string> files{path.string()};
    std::error_code ignored;
    const bool is_folder = fs::is_directory(path, ignored);
    if (!is_folder && path.extension() != ".json") return files;
    fs::directory_iterator entry(is_folder ? path : fs::absolute(path).parent_path(), ignored);
    while (!ignored && entry != fs::directory_iterator()) {
        if (may_be_of_weights(entry->path().filename().string())) files.push_back(entry->path().string());
        entry.increment(ignored);
    }
    return files;
}

}  // namespace

std::vector<KeptFile> files_of_run(const std::string& folder) {
    std::vector<KeptFile> kept;
    const auto add = [&](const char* name) {
        kept.push_back({(fs::path(folder) / name).string(), "a file of the run " + folder});
    };
    for (const char* name : run_files::kAll) add(name);
    for (const Sink& sink : sinks()) add(sink.file);
    return kept;
}

std::vector<KeptFile> files_of_plan(const Plan& plan) {
    std::vector<KeptFile> kept{{plan.file, "the plan"}};
    const auto add = [&](const std::string& path, const std::string& what) {
        std::error_code ignored;
        const bool is_file = !path.empty() && !fs::is_directory(path, ignored);  // data may lie around an output
        if (is_file) kept.push_back({path, what});
    };
    for (const TrialFile& file : trial_files(plan)) add(file.path, "a model file of the plan");
    for (const std::string& file : weights_at(plan.model.init_from)) add(file, "model.init_from of the plan");
    for (const std::string& file : data_files(plan.data)) add(file, "a data file of the plan");
    std::ranges::move(files_of_run(plan.run.dir), std::back_inserter(kept));
    return kept;
}

void check_outputs(const std::vector<NamedOutput>& outputs, const std::vector<KeptFile>& kept) {
    for (const NamedOutput& output : outputs) {
        if (output.path.empty()) continue;
        for (const KeptFile& file : kept) {
            if (!is_same(output.path, file.path)) continue;
            throw Error(ErrorKind::CommandLine, output.option + " would replace " + printable(output.path) + ", " +
                                                    printable(file.what) + "; name another file");
        }
    }
}

}  // namespace vpp
