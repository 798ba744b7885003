#include "base/shell.hpp"

#include <algorithm>
#include <cctype>

namespace vpp {

namespace {

/// Characters that mean nothing to a shell, wherever they stand in a word.
bool is_plain(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || std::string_view("_@%+=:,./-").find(c) != std::string::npos;
}

}  // namespace

std::string shell_quoted(std::string_view word) {
    if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return std::string(word);
    std::string quoted = "'";
    for (char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted + "'";
}

std::string shell_line(const std::vector<std::string>& words) {
    std::string line;
    for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_quoted(word);
    return line;
}

}  // namespace vpp
