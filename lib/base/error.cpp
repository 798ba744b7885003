#include "base/error.hpp"

#include <algorithm>

namespace vpp {

namespace {

std::string join(const std::vector<Problem>& problems) {
    std::string text;
    for (const Problem& problem : problems) {
        if (!text.empty()) text += '\n';
        text += to_text(problem);
    }
    return text;
}

constexpr size_t kShownColumns = 160;

/// The part of the line around the column, and a caret under it.
std::string caret_lines(const SourcePosition& position) {
    const size_t column = position.column > 0 ? static_cast<size_t>(position.column) - 1 : 0;
    const size_t begin = column > kShownColumns / 2 ? column - kShownColumns / 2 : 0;
    if (begin >= position.text.size() && !position.text.empty() && column > position.text.size()) return "";
    const std::string shown = printable(std::string_view(position.text).substr(begin, kShownColumns));
    return "\n    " + shown + "\n    " + std::string(column - begin, ' ') + "^";
}

}  // namespace

std::string printable(std::string_view text) {
    std::string shown(text);
    std::replace_if(
        shown.begin(), shown.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
    // U+0080 to U+009F in UTF-8, among them one that begins an order to the terminal.
    for (size_t i = 1; i < shown.size(); ++i) {
        const auto last = static_cast<unsigned char>(shown[i]);
        if (shown[i - 1] == '\xc2' && last >= 0x80 && last < 0xa0) shown.replace(i - 1, 2, "??");
    }
    return shown;
}

std::string to_text(const Problem& problem) {
    if (!problem.position) return problem.message;
    const SourcePosition& position = *problem.position;
    std::string text = position.source;
    if (position.line > 0) {
        text += ':' + std::to_string(position.line) + ':' + std::to_string(position.column);
    }
    text += ": " + problem.message;
    if (!position.text.empty()) text += caret_lines(position);
    return text;
}

Error::Error(ErrorKind kind, std::string message, std::optional<SourcePosition> position)
    : Error(kind, std::vector<Problem>{{std::move(message), std::move(position)}}) {}

Error::Error(ErrorKind kind, std::vector<Problem> problems)
    : std::runtime_error(join(problems)), kind_(kind), problems_(std::move(problems)) {}

void check(bool condition, std::string_view text, const char* file, int line, const char* function) {
    if (condition) return;
    throw Error(ErrorKind::Bug, "this is a bug in vpp: " + std::string(text) + " (" + file + ':' +
                                    std::to_string(line) + ", " + function + ')');
}

}  // namespace vpp
