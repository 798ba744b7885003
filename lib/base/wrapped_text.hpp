#pragma once
// Prose in lines of a fixed width, for help, explanations and tables with a column of sentences.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace vpp {

/// Every screen that is printed fits into so many columns.
inline constexpr size_t kScreenColumns = 80;

/// The text in lines of at most `width` columns, broken at spaces; a word that is longer stands alone on its line.
/// Lines behind the first begin with `hanging` spaces. Runs of spaces count as one. An empty text is one empty line.
/// Requires: hanging < width.
std::vector<std::string> wrapped_lines(std::string_view text, size_t width, size_t hanging = 0);

/// The text wrapped so that each line begins with `indent` spaces and ends within `width`; every line has its end.
std::string indented_text(std::string_view text, size_t indent, size_t width = kScreenColumns);

/// A row of two columns: `left` behind `indent` spaces, `right` wrapped from `column` on. A left part that reaches into
/// the second column has a line of its own.
/// Requires: indent < column < width.
std::string two_columns(std::string_view left, std::string_view right, size_t indent, size_t column,
                        size_t width = kScreenColumns);

}  // namespace vpp
