#include "data/token_file.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "data/megatron_index.hpp"
#include "data/token_header.hpp"

namespace vpp::detail {

namespace {

namespace fs = std::filesystem;

/// The first bytes of a file, at most so many.
Bytes begin_of(const InputFile& file, size_t most) {
    Bytes begin(static_cast<size_t>(std::min<uint64_t>(file.size_bytes(), most)));
    file.read(0, begin);
    return begin;
}

template <typename T>
T value_at(const InputFile& file, uint64_t offset) {
    T value;
    file.read(offset, std::as_writable_bytes(std::span(&value, 1)));
    return value;
}

/// What to do about an index that does not fit: where its name is also that of a .bin file, it belongs to that one.
std::string remedy_for(const fs::path& tokens, const fs::path& index) {
    const fs::path owner = fs::path(tokens).replace_extension(".bin");
    std::error_code ignored;
    if (owner == tokens || !fs::is_regular_file(owner, ignored)) return "copy both again";
    return index.filename().string() + " belongs to " + owner.filename().string() +
           ": name that file, or for a text data.kind = \"text\"";
}

TokenFile open_indexed(InputFile file, const fs::path& index_path, const std::string& dtype) {
    const std::string path = file.path().string();
    const InputFile index(index_path);
    const MegatronIndex held =
        megatron_index(begin_of(index, kMegatronHeaderBytes), index.size_bytes(), index_path.string());
    check_megatron_end(value_at<int64_t>(index, held.last_begin_at()), value_at<int32_t>(index, held.last_length_at()),
                       held.token_bytes, file.size_bytes(), path, remedy_for(path, index_path));
    if (dtype != "auto" && held.token_bytes != (dtype == "uint32" ? 4 : 2)) {
        throw Error(ErrorKind::BadData, path + ": its index says " + std::to_string(held.token_bytes) +
                                            " bytes a token and data.token_dtype says " + dtype +
                                            "; try data.token_dtype = \"auto\"");
    }
    const auto num_tokens = static_cast<int64_t>(file.size_bytes() / held.token_bytes);
    return {std::move(file), 0, held.token_bytes, num_tokens};
}

}  // namespace

std::optional<fs::path> index_beside(const std::string& path) {
    const fs::path index_path = fs::path(path).replace_extension(".idx");
    std::error_code ignored;
    if (index_path == fs::path(path) || !fs::is_regular_file(index_path, ignored)) return std::nullopt;
    return index_path;
}

TokenFile open_token_file(const std::string& path, const std::string& dtype) {
    check(dtype == "auto" || dtype == "uint16" || dtype == "uint32", "the plan allows no other data.token_dtype");
    InputFile file(path);
    const auto found = index_beside(path);
    const fs::path index_path = found.value_or("");
    if (found && (dtype == "auto" || is_megatron_index(begin_of(InputFile(index_path), kMegatronHeaderBytes)))) {
        return open_indexed(std::move(file), index_path, dtype);
    }
    const TokenLayout layout = token_layout(begin_of(file, kTokenHeaderBytes), file.size_bytes(), dtype, path);
    return {std::move(file), layout.offset_bytes, layout.token_bytes, layout.num_tokens};
}

DocumentFile open_documents(TokenFile file) {
    const std::string path = file.file.path().string();
    const auto index_path = index_beside(path);
    if (!index_path) {
        throw Error(ErrorKind::BadData, path +
                                            ": no index of its documents lies beside it, and data.documents = "
                                            "\"apart\" needs one, of Megatron-LM's form; make both with vpp data make, "
                                            "or leave data.documents out");
    }
    InputFile index(*index_path);
    const std::string source = index_path->string();
    const MegatronIndex held = megatron_index(begin_of(index, kMegatronHeaderBytes), index.size_bytes(), source);
    Bytes lists(index.size_bytes() - kMegatronHeaderBytes);
    index.read(kMegatronHeaderBytes, lists);
    std::vector<int64_t> begins = megatron_documents(held, lists, file.num_tokens, source);
    return {std::move(file), std::move(index), std::move(begins)};
}

}  // namespace vpp::detail
