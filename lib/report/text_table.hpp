#pragma once
// A table for terminals: columns as wide as their cells, two blanks between them. Where it is wider than the page,
// texts are cut off; where that is not enough, the columns that do not fit go into further tables below, which begin
// with the same key columns.
#include <optional>
#include <string>
#include <vector>

namespace vpp {

/// How a page is written.
struct TextStyle {
    int width = 120;      ///< columns
    bool colour = false;  ///< ANSI
};

struct TextCell {
    std::string text;            ///< UTF-8, each character one column wide
    std::optional<int> stage{};  ///< painted in this stage's colour (report/stage_colours.hpp)
};

struct TextColumn {
    std::string name;
    bool left = false;  ///< texts to the left, numbers to the right
    int shortest = 0;   ///< a left column that may be cut off with ".." down to this width; 0 = never
};

class TextTable {
  public:
    /// `num_keys`: so many columns begin every table.
    TextTable(std::vector<TextColumn> columns, size_t num_keys) : columns_(std::move(columns)), num_keys_(num_keys) {}

    /// Requires: a cell for every column.
    void add(std::vector<TextCell> row);
    /// Every line ends in a line end; between tables an empty line.
    std::string text(const TextStyle& style) const;

  private:
    /// Of all columns, texts cut off where the whole table fits then.
    std::vector<size_t> widths(size_t page) const;
    size_t widest_to_shorten(const std::vector<size_t>& widths) const;
    std::string part(const std::vector<size_t>& shown, const std::vector<size_t>& widths, bool colour) const;

    std::vector<TextColumn> columns_;
    size_t num_keys_;
    std::vector<std::vector<TextCell>> rows_;
};

/// The text in lines of at most `width` columns, broken between words; lines behind the first begin with `indent`
/// blanks. A word that is longer has a line of its own. Ends in a line end.
std::string wrapped(const std::string& text, int width, int indent);

}  // namespace vpp
