#include <utility>

#include "base/error.hpp"
#include "data/kinds.hpp"
#include "data/token_file.hpp"

namespace vpp::detail {

std::unique_ptr<Dataset> open_tokens(const Plan& plan, Subset subset) {
    check_token_keys(plan);
    std::vector<TokenFile> files;
    for (const std::string& path : files_of(plan, subset)) {
        files.push_back(open_token_file(path, plan.data.token_dtype));
    }
    if (files.empty()) return nullptr;
    if (plan.data.documents == "apart") {
        const int64_t ignored_target = plan.loss ? plan.loss->ignore_index : LossPlan{}.ignore_index;
        std::vector<DocumentFile> documents;
        for (TokenFile& file : files) documents.push_back(open_documents(std::move(file)));
        return make_documents(std::move(documents), plan.data.sequence_length, ignored_target);
    }
    return make_windows("tokens", std::move(files), plan.data.sequence_length, 0);
}

}  // namespace vpp::detail

namespace vpp {

std::string token_types(const Plan& plan) {
    std::string types;
    if (plan.data.kind != "tokens") return types;
    for (const std::string& path : plan.data.train) {
        const size_t num_bytes = detail::open_token_file(path, plan.data.token_dtype).token_bytes;
        types += (types.empty() ? "" : ", ") + ("uint" + std::to_string(8 * num_bytes));
    }
    return types;
}

}  // namespace vpp
