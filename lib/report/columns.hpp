#pragma once
// Lines of columns that fit a width: what matters least is left out first.
#include <string>
#include <vector>

namespace vpp {

/// One column of a line.
struct Column {
    std::string text;  ///< ASCII, without escapes
    int worth = 0;     ///< the smallest goes first, among equals the last; the largest always stays
};

/// The columns with two blanks between them, at most `width` long; 0 = any length.
std::string fitted_line(std::vector<Column> columns, size_t width);

/// The text with blanks before or behind it, at least `width` long.
std::string right_aligned(const std::string& text, size_t width);
std::string left_aligned(std::string text, size_t width);

}  // namespace vpp
