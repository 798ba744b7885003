#include "report/markup.hpp"

#include <cmath>
#include <cstdint>
#include <optional>

#include "base/units.hpp"

namespace vpp {

namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

struct Character {
    uint32_t code = 0;
    size_t length = 0;
};

/// The character at the start of the text, which is not empty; nothing for what is no UTF-8.
std::optional<Character> first_character(std::string_view text) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
    if (byte(0) < 0x80) return Character{byte(0), 1};
    const size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
    if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < length) return std::nullopt;
    uint32_t code = byte(0) & (0x7fu >> length);
    for (size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xc0) != 0x80) return std::nullopt;
        code = code << 6 | (byte(i) & 0x3f);
    }
    constexpr uint32_t kFirstOfLength[] = {0, 0, 0x80, 0x800, 0x10000};
    const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
    if (code < kFirstOfLength[length] || is_surrogate || code > 0x10ffff) return std::nullopt;
    return Character{code, length};
}

bool is_shown(uint32_t code) {
    const bool is_control = (code < 0x20 && code != '\n' && code != '\t') || (code >= 0x7f && code < 0xa0);
    const bool turns = (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
    const bool is_none = (code & 0xfffe) == 0xfffe;
    return !is_control && !turns && !is_none;
}

std::string_view entity_of(uint32_t code) {
    switch (code) {
        case '&':
            return "&amp;";
        case '<':
            return "&lt;";
        case '>':
            return "&gt;";
        case '"':
            return "&quot;";
        case '\'':
            return "&#39;";
        default:
            return "";
    }
}

}  // namespace

std::string escaped(std::string_view text) {
    std::string safe;
    while (!text.empty()) {
        const std::optional<Character> character = first_character(text);
        const size_t length = character ? character->length : 1;
        if (!character || !is_shown(character->code)) {
            safe += kReplacement;
        } else if (const std::string_view entity = entity_of(character->code); !entity.empty()) {
            safe += entity;
        } else {
            safe += text.substr(0, length);
        }
        text.remove_prefix(length);
    }
    return safe;
}

std::string coordinate(double value) {
    if (!std::isfinite(value)) return "0";
    std::string text = fixed_text(value, 2);
    while (text.back() == '0') text.pop_back();
    if (text.back() == '.') text.pop_back();
    return text == "-0" ? "0" : text;
}

}  // namespace vpp
