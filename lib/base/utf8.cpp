#include "base/utf8.hpp"

#include <algorithm>

namespace vpp {

std::optional<Character> first_character(std::string_view text) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
    if (byte(0) < 0x80) return Character{byte(0), 1};
    const size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
    if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < length) return std::nullopt;
    uint32_t code = byte(0) & (0x7fu >> length);
    for (size_t i = 1; i < length; ++i) {
        if (begins_character(text[i])) return std::nullopt;
        code = code << 6 | (byte(i) & 0x3f);
    }
    constexpr uint32_t kFirstOfLength[] = {0, 0, 0x80, 0x800, 0x10000};
    const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
    if (code < kFirstOfLength[length] || is_surrogate || code > 0x10ffff) return std::nullopt;
    return Character{code, length};
}

size_t num_characters(std::string_view text) {
    return static_cast<size_t>(std::ranges::count_if(text, begins_character));
}

std::string beginning_of(const std::string& text, size_t most_bytes) {
    if (text.size() <= most_bytes) return text;
    size_t end = most_bytes;
    while (end > 0 && !begins_character(text[end])) --end;
    return text.substr(0, end) + "...";
}

std::string as_utf8(std::string_view text) {
    std::string whole;
    while (!text.empty()) {
        const std::optional<Character> character = first_character(text);
        const size_t length = character ? character->length : 1;
        whole += character ? text.substr(0, length) : kReplacement;
        text.remove_prefix(length);
    }
    return whole;
}

}  // namespace vpp
