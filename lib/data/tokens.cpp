#include <algorithm>
#include <array>
#include <span>

#include "base/error.hpp"
#include "data/kinds.hpp"
#include "data/token_header.hpp"
#include "data/windows.hpp"

namespace vpp::detail {

namespace {

TokenFile open_file(const std::string& path, const std::string& dtype) {
    InputFile file(path);
    std::array<std::byte, kTokenHeaderBytes> begin{};
    const size_t held = static_cast<size_t>(std::min<uint64_t>(file.size_bytes(), begin.size()));
    file.read(0, std::span(begin).first(held));
    const TokenLayout layout = token_layout(std::span(begin).first(held), file.size_bytes(), dtype, path);
    return {std::move(file), layout.offset_bytes, layout.token_bytes, layout.num_tokens};
}

}  // namespace

std::unique_ptr<Dataset> open_tokens(const Plan& plan, Subset subset) {
    check_token_keys(plan);
    const std::string dtype = plan.data.token_dtype.empty() ? "auto" : plan.data.token_dtype;
    if (dtype != "auto" && dtype != "uint16" && dtype != "uint32") {
        throw Error(ErrorKind::Plan,
                    "unknown data.token_dtype (got '" + printable(dtype) + "', expected auto, uint16 or uint32)",
                    plan.where("data.token_dtype"));
    }
    std::vector<TokenFile> files;
    for (const std::string& path : files_of(plan, subset)) files.push_back(open_file(path, dtype));
    if (files.empty()) return nullptr;
    return make_windows("tokens", std::move(files), plan.data.sequence_length, 0);
}

}  // namespace vpp::detail
