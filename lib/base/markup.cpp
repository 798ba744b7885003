#include "base/markup.hpp"

#include <cmath>

#include "base/units.hpp"
#include "base/utf8.hpp"

namespace vpp {

namespace {

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
