#include "checkpoint/weights_folder.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/error.hpp"
#include "base/file.hpp"
#include "checkpoint/weights_match.hpp"

namespace vpp {

namespace fs = std::filesystem;

bool is_index_name(std::string_view name) {
    return name.ends_with(".json") && name.find(".safetensors.index.") != std::string_view::npos;
}

fs::path weights_in(const fs::path& folder) {
    std::vector<std::string> indices, files;
    for (const std::string& name : names_in_folder(folder)) {
        if (is_index_name(name)) indices.push_back(name);
        if (name.ends_with(".safetensors")) files.push_back(name);
    }
    std::vector<std::string>& found = indices.empty() ? files : indices;
    if (found.size() == 1) return folder / found.front();
    if (found.empty()) {
        throw Error(ErrorKind::MissingInput, folder.string() +
                                                 " holds no weights: no manifest.json of a checkpoint (a folder like "
                                                 "checkpoints/step-00000050), no *.safetensors.index.json and no "
                                                 "*.safetensors");
    }
    throw Error(ErrorKind::BadData, folder.string() +
                                        " has no manifest.json of a checkpoint, but several files of weights: " +
                                        names_text(found) + "; name one of them");
}

}  // namespace vpp
