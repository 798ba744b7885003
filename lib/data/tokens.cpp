#include <utility>

#include "base/error.hpp"
#include "data/kinds.hpp"
#include "data/token_file.hpp"

namespace vpp::detail {

std::unique_ptr<Dataset> open_tokens(const Plan& plan, Subset subset) {
    check_token_keys(plan);
    const std::string dtype = plan.data.token_dtype.empty() ? "auto" : plan.data.token_dtype;
    if (dtype != "auto" && dtype != "uint16" && dtype != "uint32") {
        throw Error(ErrorKind::Plan,
                    "unknown data.token_dtype (got '" + printable(dtype) + "', expected auto, uint16 or uint32)",
                    plan.where("data.token_dtype"));
    }
    std::vector<TokenFile> files;
    for (const std::string& path : files_of(plan, subset)) files.push_back(open_token_file(path, dtype));
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
