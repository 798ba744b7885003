#include "data/megatron_index.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/bad_data.hpp"
#include "base/error.hpp"

namespace vpp::detail {

namespace {

using namespace std::string_view_literals;

constexpr std::string_view kTag = "MMIDIDX\0\0"sv;

uint64_t whole_at(std::span<const std::byte> begin, size_t offset) {
    uint64_t value = 0;
    std::memcpy(&value, begin.data() + offset, sizeof value);
    return value;
}

/// Signed types hold tokens as well: none is negative.
std::optional<size_t> token_bytes_of(std::byte code) {
    switch (std::to_integer<int>(code)) {
        case 1:
            return 1;  // uint8
        case 3:
            return 2;  // int16
        case 8:
            return 2;  // uint16
        case 4:
            return 4;  // int32
        case 5:
            return 8;  // int64
        default:
            return std::nullopt;
    }
}

/// Whether the lists of an index with so many sequences and borders fill a file. Divides where it could wrap around.
bool fills_index(uint64_t num_sequences, uint64_t num_borders, uint64_t size_bytes) {
    constexpr uint64_t kSequenceBytes = 4 + 8, kModeBytes = 1, kBorderBytes = 8;
    const uint64_t held = size_bytes - kMegatronHeaderBytes;
    if (num_sequences > held / kSequenceBytes || num_borders > held / kBorderBytes) return false;
    const uint64_t plain = num_sequences * kSequenceBytes + num_borders * kBorderBytes;
    return held == plain || held == plain + num_sequences * kModeBytes;
}

}  // namespace

bool is_megatron_index(std::span<const std::byte> begin) {
    return std::string_view(reinterpret_cast<const char*>(begin.data()), begin.size()).starts_with(kTag);
}

MegatronIndex megatron_index(std::span<const std::byte> begin, uint64_t size_bytes, const std::string& source) {
    if (!is_megatron_index(begin)) {
        refuse_data(source,
                    "no index of Megatron-LM, but it lies beside a token file of that name; rename it, or name the "
                    "type of the tokens: data.token_dtype = \"uint16\"");
    }
    if (begin.size() < kMegatronHeaderBytes) refuse_data(source, "the index is cut short");
    const uint64_t version = whole_at(begin, 9), num_sequences = whole_at(begin, 18), num_borders = whole_at(begin, 26);
    if (version != 1) {
        refuse_data(source, "unknown version of the index (got " + std::to_string(version) + ", expected 1)");
    }
    const std::optional<size_t> token_bytes = token_bytes_of(begin[17]);
    if (!token_bytes) {
        refuse_data(source, "the index says that the tokens are of type " +
                                std::to_string(std::to_integer<int>(begin[17])) +
                                " (expected 1, 3, 4, 5 or 8: whole numbers)");
    }
    if (num_sequences == 0) refuse_data(source, "the index has no sequence");
    if (!fills_index(num_sequences, num_borders, size_bytes)) {
        refuse_data(source, "the index does not fit its file (got " + std::to_string(num_sequences) + " sequences, " +
                                std::to_string(num_borders) + " document borders and " + std::to_string(size_bytes) +
                                " bytes); copy the file again");
    }
    return {*token_bytes, num_sequences, num_borders};
}

void check_megatron_end(int64_t last_begin, int32_t last_length, size_t token_bytes, uint64_t size_bytes,
                        const std::string& source, const std::string& remedy) {
    const auto length_bytes = static_cast<uint64_t>(std::max(last_length, 0)) * token_bytes;
    const bool fits = last_begin >= 0 && last_length >= 0 && length_bytes <= size_bytes &&
                      static_cast<uint64_t>(last_begin) == size_bytes - length_bytes && size_bytes % token_bytes == 0;
    if (fits) return;
    refuse_data(source, "its index does not fit it (got a last sequence of " + std::to_string(last_length) +
                            " tokens at byte " + std::to_string(last_begin) + ", and the file has " +
                            std::to_string(size_bytes) + " bytes); " + remedy);
}

std::vector<int64_t> megatron_documents(const MegatronIndex& index, std::span<const std::byte> lists,
                                        int64_t num_tokens, const std::string& source) {
    const auto number = [&]<typename T>(uint64_t offset, T value) {
        std::memcpy(&value, lists.data() + offset, sizeof value);
        return value;
    };
    const uint64_t begins_at = 4 * index.num_sequences, borders_at = begins_at + 8 * index.num_sequences;
    check(lists.size() >= borders_at + 8 * index.num_borders, "the lists are those that the header announces");
    // Of each sequence where it begins, and the end.
    std::vector<int64_t> begins;
    int64_t end = 0;
    for (uint64_t i = 0; i < index.num_sequences; ++i) {
        const auto length = number(4 * i, int32_t{});
        const auto begin = number(begins_at + 8 * i, int64_t{});
        const bool fits = length >= 0 && length <= num_tokens - end;
        if (!fits || begin != end * static_cast<int64_t>(index.token_bytes)) {
            refuse_data(source,
                        "sequence " + std::to_string(i) + " does not follow the one before it (got " +
                            std::to_string(length) + " tokens from byte " + std::to_string(begin) +
                            " on, expected to begin at byte " +
                            std::to_string(end * static_cast<int64_t>(index.token_bytes)) + " of " +
                            std::to_string(num_tokens) +
                            " tokens); join the documents, data.documents = \"joined\", or make the index again");
        }
        begins.push_back(end);
        end += length;
    }
    begins.push_back(end);
    std::vector<int64_t> documents;
    int64_t before = -1;
    for (uint64_t i = 0; i < index.num_borders; ++i) {
        const auto border = number(borders_at + 8 * i, int64_t{});
        const bool is_end = i == 0 || i + 1 == index.num_borders;
        const int64_t expected = i == 0 ? 0 : static_cast<int64_t>(index.num_sequences);
        if (border < before || border > static_cast<int64_t>(index.num_sequences) || (is_end && border != expected)) {
            refuse_data(source, "document border " + std::to_string(i) + " is at sequence " + std::to_string(border) +
                                    " (expected ascending numbers from 0 to the number of sequences, " +
                                    std::to_string(index.num_sequences) + ")");
        }
        documents.push_back(begins[static_cast<size_t>(border)]);
        before = border;
    }
    if (end != num_tokens || documents.size() < 2) {
        refuse_data(source, "the documents do not fill the token file (got " + std::to_string(documents.size()) +
                                " borders and " + std::to_string(end) + " tokens, the file has " +
                                std::to_string(num_tokens) + ")");
    }
    return documents;
}

}  // namespace vpp::detail
