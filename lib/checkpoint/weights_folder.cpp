#include "checkpoint/weights_folder.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/error.hpp"
#include "checkpoint/weights_match.hpp"

namespace vpp {

namespace fs = std::filesystem;

bool is_index_name(std::string_view name) {
    return name.ends_with(".json") && name.find(".safetensors.index.") != std::string_view::npos;
}

fs::path weights_in(const fs::path& folder) {
    std::vector<std::string> indices, files;
    std::error_code problem;
    fs::directory_iterator entry(folder, problem);
    while (!problem && entry != fs::directory_iterator()) {
        const std::string name = entry->path().filename().string();
        if (is_index_name(name)) indices.push_back(name);
        if (name.ends_with(".safetensors")) files.push_back(name);
        entry.increment(problem);
    }
    if (problem) {
        throw Error(ErrorKind::Io, "cannot list the folder " + folder.string() + ": " + problem.message());
    }
    std::vector<std::string>& found = indices.empty() ? files : indices;
    if (found.size() == 1) return folder / found.front();
    if (found.empty()) {
        throw Error(ErrorKind::MissingInput, folder.string() +
                                                 " holds no weights: no manifest.json of a checkpoint (a folder like "
                                                 "checkpoints/step-00000050), no *.safetensors.index.json and no "
                                                 "*.safetensors");
    }
    std::ranges::sort(found);
    throw Error(ErrorKind::BadData, folder.string() +
                                        " has no manifest.json of a checkpoint, but several files of weights: " +
                                        names_text(found) + "; name one of them");
}

}  // namespace vpp
