#include "base/error.hpp"
#include "data/kinds.hpp"
#include "data/windows.hpp"

namespace vpp::detail {

std::unique_ptr<Dataset> open_text(const Plan& plan, Subset subset) {
    check_token_keys(plan);
    std::vector<TokenFile> files;
    for (const std::string& path : files_of(plan, subset)) {
        TokenFile file{InputFile(path)};
        if (file.file.size_bytes() == 0) throw Error(ErrorKind::BadData, path + ": the file is empty");
        file.num_tokens = static_cast<int64_t>(file.file.size_bytes());
        files.push_back(std::move(file));
    }
    if (files.empty()) return nullptr;
    return make_windows("text", std::move(files), plan.data.sequence_length, 256);
}

}  // namespace vpp::detail
