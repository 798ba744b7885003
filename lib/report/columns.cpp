#include "report/columns.hpp"

#include <algorithm>

namespace vpp {

namespace {

std::string joined(const std::vector<Column>& columns) {
    std::string line;
    for (const Column& column : columns) line += (line.empty() ? "" : "  ") + column.text;
    return line;
}

}  // namespace

std::string fitted_line(std::vector<Column> columns, size_t width) {
    std::string line = joined(columns);
    while (width > 0 && line.size() > width && columns.size() > 1) {
        const auto least = std::min_element(columns.rbegin(), columns.rend(),
                                            [](const auto& one, const auto& other) { return one.worth < other.worth; });
        columns.erase(std::next(least).base());
        line = joined(columns);
    }
    return width > 0 ? line.substr(0, width) : line;
}

std::string right_aligned(const std::string& text, size_t width) {
    return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

std::string left_aligned(std::string text, size_t width) {
    if (text.size() < width) text.append(width - text.size(), ' ');
    return text;
}

}  // namespace vpp
