#include "plan/value.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace vpp {

namespace {

bool is_bare(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

std::string key_text(const std::string& key) {
    return !key.empty() && std::ranges::all_of(key, is_bare) ? key : toml_quoted(key);
}

std::string number_text(double number) {
    std::array<char, 32> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    std::string text(digits.data(), end);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";  // TOML would read an integer
    return text;
}

template <typename Items, typename Write>
std::string joined_items(const Items& items, Write write) {
    std::string text;
    for (const auto& item : items) text += (text.empty() ? "" : ", ") + write(item);
    return text;
}

struct Writer {
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(int64_t value) const { return std::to_string(value); }
    std::string operator()(double value) const { return number_text(value); }
    std::string operator()(const std::string& value) const { return toml_quoted(value); }
    std::string operator()(const std::vector<std::string>& value) const {
        return '[' + joined_items(value, toml_quoted) + ']';
    }
    std::string operator()(const std::vector<int64_t>& value) const {
        return '[' + joined_items(value, [](int64_t item) { return std::to_string(item); }) + ']';
    }
    std::string operator()(const std::vector<double>& value) const {
        return '[' + joined_items(value, number_text) + ']';
    }
    std::string operator()(const NamedTexts& value) const {
        if (value.empty()) return "{}";
        return "{ " +
               joined_items(
                   value, [](const auto& entry) { return key_text(entry.first) + " = " + toml_quoted(entry.second); }) +
               " }";
    }
};

}  // namespace

std::string toml_text(const Value& value) {
    return std::visit(Writer{}, value);
}

std::string toml_quoted(std::string_view text) {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    std::string quoted = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            quoted += '\\';
            quoted += c;
        } else if (byte < 0x20 || byte == 0x7f) {
            quoted += "\\u00";
            quoted += kDigits[byte >> 4];
            quoted += kDigits[byte & 15];
        } else {
            quoted += c;
        }
    }
    return quoted + '"';
}

}  // namespace vpp
