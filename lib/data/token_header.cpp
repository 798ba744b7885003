#include "data/token_header.hpp"

#include <array>
#include <cstring>

#include "base/error.hpp"

namespace vpp::detail {

namespace {

struct HeaderKind {
    int32_t magic, version;
    size_t token_bytes;
    const char* dtype;
};

constexpr std::array<HeaderKind, 2> kHeaderKinds{{{20240520, 1, 2, "uint16"}, {20240801, 7, 4, "uint32"}}};

int32_t number_at(std::span<const std::byte> begin, size_t index) {
    int32_t value = 0;
    std::memcpy(&value, begin.data() + index * sizeof value, sizeof value);
    return value;
}

[[noreturn]] void refuse(const std::string& source, const std::string& what) {
    throw Error(ErrorKind::BadData, source + ": " + what);
}

/// The header that the file's first number announces; nothing for raw tokens. A file whose other numbers fit a header
/// exactly is none of raw tokens: its first number is damaged.
const HeaderKind* find_header(std::span<const std::byte> begin, uint64_t size, const std::string& source) {
    if (begin.size() < sizeof(int32_t)) return nullptr;
    const int32_t first = number_at(begin, 0);
    for (const HeaderKind& kind : kHeaderKinds) {
        if (first == kind.magic) return &kind;
    }
    if (size < kTokenHeaderBytes) return nullptr;
    const int32_t version = number_at(begin, 1), count = number_at(begin, 2);
    for (const HeaderKind& kind : kHeaderKinds) {
        const bool fits = version == kind.version && count > 0 &&
                          size == kTokenHeaderBytes + static_cast<uint64_t>(count) * kind.token_bytes;
        if (fits) {
            refuse(source, "the llm.c header is damaged: its first number (got " + std::to_string(first) +
                               ", expected " + std::to_string(kind.magic) + ")");
        }
    }
    return nullptr;
}

TokenLayout check_header(std::span<const std::byte> begin, uint64_t size, const HeaderKind& kind,
                         const std::string& dtype, const std::string& source) {
    if (size < kTokenHeaderBytes) {
        refuse(source, "the llm.c header is cut short (got " + std::to_string(size) + " bytes, expected " +
                           std::to_string(kTokenHeaderBytes) + ")");
    }
    const int32_t version = number_at(begin, 1), count = number_at(begin, 2);
    if (version != kind.version) {
        refuse(source, "unknown version of the llm.c header (got " + std::to_string(version) + ", expected " +
                           std::to_string(kind.version) + " with magic " + std::to_string(kind.magic) + ")");
    }
    const uint64_t held = (size - kTokenHeaderBytes) / kind.token_bytes;
    if (count < 0 || size != kTokenHeaderBytes + static_cast<uint64_t>(count) * kind.token_bytes) {
        refuse(source, "the llm.c header does not fit the file (got a count of " + std::to_string(count) +
                           " tokens, expected " + std::to_string(held) + " by the file's " + std::to_string(size) +
                           " bytes); the file is cut short or damaged");
    }
    if (dtype != "auto" && dtype != kind.dtype) {
        refuse(source, "the llm.c header says " + std::string(kind.dtype) + " and data.token_dtype says " + dtype +
                           "; try data.token_dtype = \"auto\"");
    }
    return {kTokenHeaderBytes, kind.token_bytes, count};
}

}  // namespace

TokenLayout token_layout(std::span<const std::byte> begin, uint64_t size, const std::string& dtype,
                         const std::string& source) {
    if (const HeaderKind* kind = find_header(begin, size, source))
        return check_header(begin, size, *kind, dtype, source);
    if (size == 0) refuse(source, "the file is empty");
    const size_t token_bytes = dtype == "uint32" ? 4 : 2;
    if (size % token_bytes != 0) {
        refuse(source, "the size is no whole number of tokens (got " + std::to_string(size) +
                           " bytes, expected a multiple of " + std::to_string(token_bytes) +
                           "); the file is cut short, or data.token_dtype is another");
    }
    return {0, token_bytes, static_cast<int64_t>(size / token_bytes)};
}

}  // namespace vpp::detail
