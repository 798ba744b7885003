#include <array>
#include <optional>
#include <span>

#include "base/error.hpp"
#include "data/kinds.hpp"
#include "data/windows.hpp"

namespace vpp::detail {

namespace {

// llm.c: 256 int32 (magic, version, number of tokens, then zeros), then the tokens.
// Source: llm.c, dev/data/data_common.py, write_datafile.
constexpr size_t kHeaderBytes = 256 * sizeof(int32_t);

struct HeaderKind {
    int32_t magic, version;
    size_t token_bytes;
    const char* dtype;
};

constexpr std::array<HeaderKind, 2> kHeaderKinds{{{20240520, 1, 2, "uint16"}, {20240801, 7, 4, "uint32"}}};

int32_t header_value(const InputFile& file, size_t index) {
    int32_t value = 0;
    file.read(index * sizeof(value), std::as_writable_bytes(std::span(&value, 1)));
    return value;
}

/// The header that the file's first number announces; nothing for raw tokens.
const HeaderKind* find_header(const InputFile& file) {
    if (file.size_bytes() < sizeof(int32_t)) return nullptr;
    const int32_t first = header_value(file, 0);
    for (const HeaderKind& kind : kHeaderKinds) {
        if (first == kind.magic) return &kind;
    }
    return nullptr;
}

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
    throw Error(ErrorKind::BadData, path + ": " + what);
}

TokenFile check_header(TokenFile file, const HeaderKind& kind, const std::string& path, const std::string& dtype) {
    const uint64_t size = file.file.size_bytes();
    if (size < kHeaderBytes) {
        refuse(path, "the llm.c header is cut short (got " + std::to_string(size) + " bytes, expected " +
                         std::to_string(kHeaderBytes) + ")");
    }
    const int32_t version = header_value(file.file, 1), count = header_value(file.file, 2);
    if (version != kind.version) {
        refuse(path, "unknown version of the llm.c header (got " + std::to_string(version) + ", expected " +
                         std::to_string(kind.version) + " with magic " + std::to_string(kind.magic) + ")");
    }
    const uint64_t held = (size - kHeaderBytes) / kind.token_bytes;
    if (count < 0 || size != kHeaderBytes + static_cast<size_t>(count) * kind.token_bytes) {
        refuse(path, "the llm.c header does not fit the file (got a count of " + std::to_string(count) +
                         " tokens, expected " + std::to_string(held) + " by the file's " + std::to_string(size) +
                         " bytes); the file is cut short or damaged");
    }
    if (dtype != "auto" && dtype != kind.dtype) {
        refuse(path, "the llm.c header says " + std::string(kind.dtype) + " and data.token_dtype says " + dtype +
                         "; try data.token_dtype = \"auto\"");
    }
    file.offset_bytes = kHeaderBytes;
    file.token_bytes = kind.token_bytes;
    file.num_tokens = count;
    return file;
}

TokenFile open_file(const std::string& path, const std::string& dtype) {
    TokenFile file{InputFile(path)};
    const uint64_t size = file.file.size_bytes();
    if (const HeaderKind* kind = find_header(file.file)) return check_header(std::move(file), *kind, path, dtype);
    if (size == 0) refuse(path, "the file is empty");
    file.token_bytes = dtype == "uint32" ? 4 : 2;
    if (size % file.token_bytes != 0) {
        refuse(path, "the size is no whole number of tokens (got " + std::to_string(size) +
                         " bytes, expected a multiple of " + std::to_string(file.token_bytes) +
                         "); the file is cut short, or data.token_dtype is another");
    }
    file.num_tokens = static_cast<int64_t>(size / file.token_bytes);
    return file;
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
