#include "data/token_header.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/bad_data.hpp"

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

/// Whether a file without one of the first numbers has a damaged header all the same: the numbers behind it fit the
/// file exactly, or it is off by a few bits and the rest is the zeros of a header. Raw tokens do neither.
bool is_damaged_header(std::span<const std::byte> begin, uint64_t size, const HeaderKind& kind) {
    constexpr int kMostBits = 8, kMostBytes = 8;
    if (begin.size() < kTokenHeaderBytes) return false;
    const int32_t version = number_at(begin, 1), count = number_at(begin, 2);
    const bool fits = version == kind.version && count > 0 &&
                      size == kTokenHeaderBytes + static_cast<uint64_t>(count) * kind.token_bytes;
    if (fits) return true;
    const auto unused = begin.first(kTokenHeaderBytes).subspan(3 * sizeof(int32_t));
    const auto num_set = std::ranges::count_if(unused, [](std::byte b) { return b != std::byte{0}; });
    return std::popcount(static_cast<uint32_t>(number_at(begin, 0) ^ kind.magic)) <= kMostBits && num_set <= kMostBytes;
}

/// The header that the file's first number announces; nothing for raw tokens.
const HeaderKind* find_header(std::span<const std::byte> begin, const uint64_t size, const std::string& source) {
    if (begin.size() < sizeof(int32_t)) return nullptr;
    const int32_t first = number_at(begin, 0);
    for (const HeaderKind& kind : kHeaderKinds) {
        if (first == kind.magic) return &kind;
    }
    for (const HeaderKind& kind : kHeaderKinds) {
        if (!is_damaged_header(begin, size, kind)) continue;
        refuse_data(source, "the llm.c header is damaged: its first number (got " + std::to_string(first) +
                                ", expected 20240520 or 20240801); copy the file anew");
    }
    return nullptr;
}

TokenLayout check_header(std::span<const std::byte> begin, uint64_t size, const HeaderKind& kind,
                         const std::string& dtype, const std::string& source) {
    if (size < kTokenHeaderBytes) {
        refuse_data(source, "the llm.c header is cut short (got " + std::to_string(size) + " bytes, expected " +
                                std::to_string(kTokenHeaderBytes) + ")");
    }
    const int32_t version = number_at(begin, 1), count = number_at(begin, 2);
    if (version != kind.version) {
        refuse_data(source, "unknown version of the llm.c header (got " + std::to_string(version) + ", expected " +
                                std::to_string(kind.version) + " with magic " + std::to_string(kind.magic) + ")");
    }
    const uint64_t held = (size - kTokenHeaderBytes) / kind.token_bytes;
    if (count < 0 || size != kTokenHeaderBytes + static_cast<uint64_t>(count) * kind.token_bytes) {
        refuse_data(source, "the llm.c header does not fit the file (got a count of " + std::to_string(count) +
                                " tokens, expected " + std::to_string(held) + " by the file's " + std::to_string(size) +
                                " bytes); the file is cut short or damaged");
    }
    if (dtype != "auto" && dtype != kind.dtype) {
        refuse_data(source, "the llm.c header says " + std::string(kind.dtype) + " and data.token_dtype says " + dtype +
                                "; try data.token_dtype = \"auto\"");
    }
    return {kTokenHeaderBytes, kind.token_bytes, count};
}

}  // namespace

TokenLayout token_layout(std::span<const std::byte> begin, uint64_t size, const std::string& dtype,
                         const std::string& source) {
    if (const HeaderKind* kind = find_header(begin, size, source))
        return check_header(begin, size, *kind, dtype, source);
    if (size == 0) refuse_data(source, "the file is empty");
    const size_t token_bytes = dtype == "uint32" ? 4 : 2;
    if (size % token_bytes != 0) {
        refuse_data(source, "the size is no whole number of tokens (got " + std::to_string(size) +
                                " bytes, expected a multiple of " + std::to_string(token_bytes) +
                                "); the file is cut short, or data.token_dtype is another");
    }
    return {0, token_bytes, static_cast<int64_t>(size / token_bytes)};
}

}  // namespace vpp::detail
