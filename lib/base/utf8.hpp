#pragma once
// Characters of texts that may be no UTF-8, as names of files may be.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vpp {

/// U+FFFD, which stands where a byte is no part of a character.
constexpr std::string_view kReplacement = "\xef\xbf\xbd";

struct Character {
    uint32_t code = 0;
    size_t length = 0;  ///< in bytes
};

/// The character at the start of the text; nothing for what is no UTF-8, long forms and halves of pairs included.
/// Requires: the text is not empty.
std::optional<Character> first_character(std::string_view text);

/// Whether a byte of UTF-8 is the first one of a character.
constexpr bool begins_character(char byte) {
    return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
}

/// How many characters begin in the text.
size_t num_characters(std::string_view text);

/// The text, or of a longer one as many characters as fit into so many bytes, and "...".
std::string beginning_of(const std::string& text, size_t most_bytes);

/// The text with each byte that is no UTF-8 replaced.
std::string as_utf8(std::string_view text);

}  // namespace vpp
