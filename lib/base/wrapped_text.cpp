#include "base/wrapped_text.hpp"

#include <algorithm>

namespace vpp {

std::vector<std::string> wrapped_lines(std::string_view text, size_t width, size_t hanging) {
    std::vector<std::string> lines(1);
    size_t num_words = 0;  // of the last line
    for (size_t at = text.find_first_not_of(' '); at < text.size(); at = text.find_first_not_of(' ', at)) {
        const size_t end = std::min(text.find(' ', at), text.size());
        const std::string_view word = text.substr(at, end - at);
        if (num_words > 0 && lines.back().size() + 1 + word.size() > width) {
            lines.emplace_back(hanging, ' ');
            num_words = 0;
        }
        if (num_words++ > 0) lines.back() += ' ';
        lines.back() += word;
        at = end;
    }
    return lines;
}

std::string indented_text(std::string_view text, size_t indent, size_t width) {
    std::string result;
    for (const std::string& line : wrapped_lines(text, width - indent)) {
        if (!line.empty()) result += std::string(indent, ' ') + line;
        result += '\n';
    }
    return result;
}

std::string two_columns(std::string_view left, std::string_view right, size_t indent, size_t column, size_t width) {
    std::string begin = std::string(indent, ' ') + std::string(left);
    if (right.empty()) return begin + '\n';
    const std::string wrapped = indented_text(right, column, width);
    const bool fits = begin.size() < column;
    return fits ? begin + wrapped.substr(begin.size()) : begin + '\n' + wrapped;
}

}  // namespace vpp
