#include "compare/plot_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "report/columns.hpp"

namespace vpp {

namespace {

constexpr int kRows = 18, kNarrowest = 40, kTextXTicks = 6, kTextYTicks = 5;
constexpr int kNobody = -1;
// Of 256: light enough for dark grounds and dark enough for light ones.
constexpr int kColours[] = {33, 208, 71, 170, 178, 37, 204, 245};

std::string coloured(char letter, int run) {
    const int colour = kColours[static_cast<size_t>(run) % std::size(kColours)];
    return "\x1b[38;5;" + std::to_string(colour) + "m" + letter + "\x1b[0m";
}

/// One character of the frame.
struct Cell {
    std::vector<int> runs;  ///< with a point here
    int dots = kNobody;     ///< whose dots pass through
};

/// A place in the frame, counted from its upper left corner.
struct TextSpot {
    int column = 0, row = 0;
};

class Frame {
  public:
    explicit Frame(int columns) : columns_(columns), cells_(static_cast<size_t>(columns * kRows)) {}

    void add_point(TextSpot spot, int run) {
        std::vector<int>& runs = at(spot).runs;
        if (runs.empty() || runs.back() != run) runs.push_back(run);
    }

    /// Dots between two points.
    void add_line(TextSpot from, TextSpot to, int run) {
        const int steps = std::max(std::abs(to.column - from.column), std::abs(to.row - from.row));
        for (int i = 1; i < steps; ++i) {
            Cell& cell = at({between(from.column, to.column, i, steps), between(from.row, to.row, i, steps)});
            if (cell.dots == kNobody) cell.dots = run;
        }
    }

    std::string row_text(int row, const Plot& plot, bool colour) {
        std::string text, blanks;
        for (int column = 0; column < columns_; ++column) {
            const Cell& cell = at({column, row});
            const int run = cell.runs.empty() ? cell.dots : cell.runs[static_cast<size_t>(column) % cell.runs.size()];
            if (run == kNobody) {
                blanks += ' ';
                continue;
            }
            const char letter = cell.runs.empty() ? '.' : plot.curves[static_cast<size_t>(run)].mark.front();
            text += blanks + (colour ? coloured(letter, run) : std::string(1, letter));
            blanks.clear();
        }
        return text;
    }

  private:
    static int between(int from, int to, int part, int parts) {
        return from + static_cast<int>(std::lround(static_cast<double>((to - from) * part) / parts));
    }
    Cell& at(TextSpot spot) { return cells_[static_cast<size_t>(spot.row * columns_ + spot.column)]; }

    int columns_;
    std::vector<Cell> cells_;
};

class Drawing {
  public:
    Drawing(const Plot& plot, const TextStyle& style)
        : plot_(plot), style_(style), axes_(plot, kTextXTicks, kTextYTicks) {
        labels_ = tick_texts(axes_.y_ticks(), plot.quantity);
        for (const std::string& label : labels_) label_width_ = std::max(label_width_, label.size());
        columns_ = std::max(kNarrowest, style.width) - static_cast<int>(label_width_) - 2;
    }

    std::string draw() const {
        if (axes_.is_empty()) return plot_.title + ": nothing to draw, no value is finite\n";
        Frame frame(columns_);
        for (size_t run = 0; run < plot_.curves.size(); ++run) add_curve(frame, static_cast<int>(run));
        std::string text = wrapped(title(), style_.width, 2);
        for (int row = 0; row < kRows; ++row) {
            text +=
                right_aligned(label_of(row), label_width_) + " |" + frame.row_text(row, plot_, style_.colour) + "\n";
        }
        return text + axis();
    }

  private:
    std::string title() const {
        std::string text = plot_.title;
        if (axes_.is_logarithmic()) text += "; logarithmic";
        if (!plot_.note.empty()) text += "; " + plot_.note;
        return text;
    }

    int column_of(double step) const { return static_cast<int>(std::lround(axes_.x(step) * (columns_ - 1))); }
    int row_of(double value) const { return static_cast<int>(std::lround((1 - axes_.y(value)) * (kRows - 1))); }

    std::string label_of(int row) const {
        for (size_t i = 0; i < labels_.size(); ++i) {
            if (row_of(axes_.y_ticks()[i]) == row) return labels_[i];
        }
        return "";
    }

    /// At most a point or two a column, of which none is made up.
    void add_curve(Frame& frame, int run) const {
        const Curve curve = thinned(plot_.curves[static_cast<size_t>(run)].curve, static_cast<size_t>(columns_));
        bool is_down = false;
        TextSpot last;
        for (size_t i = 0; i < curve.size(); ++i) {
            if (!is_drawn(curve.y[i])) {
                is_down = false;
                continue;
            }
            const TextSpot spot{column_of(curve.x[i]), row_of(curve.y[i])};
            if (is_down) frame.add_line(last, spot, run);
            frame.add_point(spot, run);
            last = spot;
            is_down = true;
        }
    }

    /// The line below the frame with the ticks of steps, and their numbers where there is room.
    std::string axis() const {
        std::string line(static_cast<size_t>(columns_), '-'), numbers = right_aligned("step", label_width_);
        const std::vector<std::string> texts = tick_texts(axes_.x_ticks(), Quantity::Count);
        for (size_t i = 0; i < texts.size(); ++i) {
            const auto column = static_cast<size_t>(column_of(axes_.x_ticks()[i]));
            line[column] = '+';
            const std::string& number = texts[i];
            const size_t wanted = label_width_ + 2 + column - std::min(column, number.size() / 2);
            const size_t begin = std::min(wanted, label_width_ + 2 + line.size() - number.size());
            if (begin > numbers.size()) numbers = left_aligned(numbers, begin) + number;
        }
        return std::string(label_width_, ' ') + " +" + line + "\n" + numbers + "\n";
    }

    const Plot& plot_;
    const TextStyle& style_;
    PlotAxes axes_;
    std::vector<std::string> labels_;  ///< of the ticks of values
    size_t label_width_ = 4;           ///< that of "step" at least
    int columns_ = 0;
};

}  // namespace

std::string plot_text(const Plot& plot, const TextStyle& style) {
    Plot drawn = plot;
    if (drawn.curves.size() > kMostLetters) drawn.curves.resize(kMostLetters);
    return Drawing(drawn, style).draw();
}

}  // namespace vpp
