#include "report/text_table.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "base/wrapped_text.hpp"
#include "report/stage_colours.hpp"

namespace vpp {

namespace {

constexpr size_t kColumnGap = 2;

std::string shortened(const std::string& text, size_t width) {
    if (num_characters(text) <= width) return text;
    size_t end = 0;
    for (size_t left = width - 2; left > 0 || !begins_character(text[end]); ++end) left -= begins_character(text[end]);
    return text.substr(0, end) + "..";
}

std::string aligned(const TextCell& cell, size_t width, bool left, bool colour) {
    const std::string text = shortened(cell.text, width);
    const std::string blanks(width - num_characters(text), ' ');
    const std::string shown = colour && cell.stage ? painted(text, *cell.stage) : text;
    return left ? shown + blanks : blanks + shown;
}

}  // namespace

void TextTable::add(std::vector<TextCell> row) {
    check(row.size() == columns_.size(), "a row has a cell for every column");
    rows_.push_back(std::move(row));
}

std::vector<size_t> TextTable::widths(size_t page) const {
    std::vector<size_t> widths;
    size_t total = 0, spare = 0;
    for (size_t column = 0; column < columns_.size(); ++column) {
        size_t width = num_characters(columns_[column].name);
        for (const std::vector<TextCell>& row : rows_) width = std::max(width, num_characters(row[column].text));
        const auto shortest = static_cast<size_t>(columns_[column].shortest);
        total += width + (column == 0 ? 0 : kColumnGap);
        if (shortest > 0 && width > shortest) spare += width - shortest;
        widths.push_back(width);
    }
    if (total <= page || total - page > spare) return widths;
    for (; total > page; --total) --widths[widest_to_shorten(widths)];
    return widths;
}

size_t TextTable::widest_to_shorten(const std::vector<size_t>& widths) const {
    size_t widest = columns_.size();
    for (size_t column = 0; column < columns_.size(); ++column) {
        const auto shortest = static_cast<size_t>(columns_[column].shortest);
        if (shortest == 0 || widths[column] <= shortest) continue;
        if (widest == columns_.size() || widths[column] > widths[widest]) widest = column;
    }
    check(widest < columns_.size(), "a column can be shortened");
    return widest;
}

std::string TextTable::text(const TextStyle& style) const {
    const auto page = static_cast<size_t>(std::max(style.width, 20));
    std::vector<size_t> width = widths(page);
    std::string text;
    for (size_t next = num_keys_; next < columns_.size() || text.empty();) {
        std::vector<size_t> shown;
        size_t used = 0;
        const auto take = [&](size_t column) {
            used += width[column] + (shown.empty() ? 0 : kColumnGap);
            shown.push_back(column);
        };
        for (size_t key = 0; key < num_keys_; ++key) take(key);
        const size_t first = next;
        for (; next < columns_.size(); ++next) {
            const size_t room = used + kColumnGap < page ? page - used - kColumnGap : 0;
            const auto shortest = static_cast<size_t>(columns_[next].shortest);
            const bool shrinks = shortest > 0 && room >= shortest && width[next] > room;
            if (shrinks) width[next] = room;
            if (width[next] > room && next > first) break;
            take(next);
        }
        text += (text.empty() ? "" : "\n") + part(shown, width, style.colour);
    }
    return text;
}

std::string TextTable::part(const std::vector<size_t>& shown, const std::vector<size_t>& widths, bool colour) const {
    std::string text;
    const auto add_line = [&](const auto& cell_of) {
        std::string line;
        for (size_t column : shown) {
            line += (line.empty() ? "" : std::string(kColumnGap, ' ')) +
                    aligned(cell_of(column), widths[column], columns_[column].left, colour);
        }
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + '\n';
    };
    add_line([&](size_t column) { return TextCell{columns_[column].name}; });
    for (const std::vector<TextCell>& row : rows_) {
        add_line([&](size_t column) { return row[column]; });
    }
    return text;
}

std::string wrapped(const std::string& text, int width, int indent) {
    const auto page = static_cast<size_t>(std::max(width, indent + 20));
    std::string lines;
    for (const std::string& line : wrapped_lines(text, page, static_cast<size_t>(indent))) lines += line + '\n';
    return lines;
}

}  // namespace vpp
