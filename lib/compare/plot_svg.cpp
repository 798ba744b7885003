#include "compare/plot_svg.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/markup.hpp"

namespace vpp {

namespace {

// In pixels.
constexpr double kWidth = 960, kFrameHeight = 420, kLeft = 84, kRight = 48, kTop = 48, kBelow = 44;
constexpr double kLegendLine = 22, kMargin = 16, kLetterHeight = 15;
constexpr int kXTicks = 10, kYTicks = 6;

// Colours as in report pages; the numbers of curves and of dashes share no divisor, so pairs repeat late.
constexpr const char* kStyle =
    "<style>.ground{fill:#ffffff}.ink{fill:#1b2430}.soft{fill:#5b6776}.grid{stroke:#e1e5ea}"
    ".curve{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round}"
    ".mark{fill:currentColor;stroke:#ffffff;stroke-width:4;paint-order:stroke;font-weight:bold;font-size:14px}"
    ".c0{color:#1f6feb}.c1{color:#d9480f}.c2{color:#2b8a3e}.c3{color:#9c36b5}.c4{color:#b08900}.c5{color:#0b8a8f}"
    ".c6{color:#c2255c}.c7{color:#5f6f81}"
    "@media (prefers-color-scheme: dark){.ground{fill:#182029}.ink{fill:#e6ebf1}.soft{fill:#97a3b2}"
    ".grid{stroke:#2a3440}.mark{stroke:#182029}.c0{color:#6ea8fe}.c1{color:#ff8f5a}.c2{color:#69db7c}"
    ".c3{color:#d58cf0}.c4{color:#ffd166}.c5{color:#4dd4d9}.c6{color:#ff80aa}.c7{color:#9fb0c2}}</style>\n";
constexpr int kNumColours = 8;
constexpr const char* kDashes[] = {"none", "10 5", "3 4", "14 4 3 4", "7 3", "3 3 10 3 3 6", "20 6"};

/// A place of the drawing.
struct Spot {
    double x = 0, y = 0;
};

std::string text_at(Spot spot, const char* anchor, const std::string& kind, const std::string& text) {
    return "<text class=\"" + kind + "\" x=\"" + coordinate(spot.x) + "\" y=\"" + coordinate(spot.y) +
           "\" text-anchor=\"" + anchor + "\">" + escaped(text) + "</text>\n";
}

std::string line_between(Spot from, Spot to) {
    return "<path class=\"grid\" d=\"M" + coordinate(from.x) + " " + coordinate(from.y) + "L" + coordinate(to.x) + " " +
           coordinate(to.y) + "\"/>\n";
}

std::string colour_class(size_t run) {
    return "c" + std::to_string(run % kNumColours);
}

std::string stroke(size_t run, const std::string& way) {
    return "<path class=\"curve " + colour_class(run) + "\" stroke-dasharray=\"" + kDashes[run % std::size(kDashes)] +
           "\" d=\"" + way + "\"/>\n";
}

/// The letter at the end of a curve.
struct EndMark {
    Spot spot;
    size_t run = 0;
};

class Picture {
  public:
    explicit Picture(const Plot& plot) : plot_(plot), axes_(plot, kXTicks, kYTicks) {}

    std::string draw() {
        const double height =
            frame_bottom() + kBelow + kLegendLine * static_cast<double>(plot_.curves.size()) + kMargin;
        std::string body = grid();
        for (size_t run = 0; run < plot_.curves.size(); ++run) body += curve(run);
        body += end_marks() + legend();
        return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + coordinate(kWidth) + " " +
               coordinate(height) + "\" width=\"" + coordinate(kWidth) + "\" height=\"" + coordinate(height) +
               "\" font-family=\"sans-serif\" font-size=\"13\">\n" + kStyle +
               "<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n" + title() + body + "</svg>\n";
    }

  private:
    static double frame_bottom() { return kTop + kFrameHeight; }
    Spot spot_of(double step, double value) const {
        return {kLeft + axes_.x(step) * (kWidth - kLeft - kRight), frame_bottom() - axes_.y(value) * kFrameHeight};
    }

    std::string title() const {
        std::string note = axes_.is_empty() ? "nothing to draw, no value is finite" : plot_.note;
        if (axes_.is_logarithmic()) note = "logarithmic" + (note.empty() ? "" : "; " + note);
        return text_at({kLeft, 28}, "start", "ink\" font-size=\"16", plot_.title) +
               text_at({kWidth - kRight, 28}, "end", "soft", note);
    }

    std::string grid() const {
        std::string text;
        const std::vector<std::string> y_texts = tick_texts(axes_.y_ticks(), plot_.quantity);
        for (size_t i = 0; i < y_texts.size(); ++i) {
            const double y = frame_bottom() - axes_.y(axes_.y_ticks()[i]) * kFrameHeight;
            text += line_between({kLeft, y}, {kWidth - kRight, y});
            text += text_at({kLeft - 10, y + 4.5}, "end", "soft", y_texts[i]);
        }
        const std::vector<std::string> x_texts = tick_texts(axes_.x_ticks(), Quantity::Count);
        for (size_t i = 0; i < x_texts.size(); ++i) {
            const double x = kLeft + axes_.x(axes_.x_ticks()[i]) * (kWidth - kLeft - kRight);
            text += line_between({x, frame_bottom()}, {x, frame_bottom() + 5});
            text += text_at({x, frame_bottom() + 21}, "middle", "soft", x_texts[i]);
        }
        if (axes_.is_empty()) return text;
        return text + text_at({kLeft - 10, frame_bottom() + 21}, "end", "soft", "step");
    }

    std::string curve(size_t run) {
        const Curve curve = thinned(plot_.curves[run].curve, static_cast<size_t>(kWidth));
        std::string way;
        std::optional<Spot> last;
        bool is_down = false;
        size_t num_drawn = 0;
        for (size_t i = 0; i < curve.size(); ++i) {
            if (!is_drawn(curve.y[i])) {
                is_down = false;
                continue;
            }
            last = spot_of(curve.x[i], curve.y[i]);
            way += (is_down ? "L" : "M") + coordinate(last->x) + " " + coordinate(last->y);
            is_down = true;
            ++num_drawn;
        }
        if (!last) return "";
        ends_.push_back({{last->x + 8, last->y + 5}, run});
        if (num_drawn == 1) way += "h0.1";  // one point has no line; a dash shows it
        return stroke(run, way);
    }

    /// Letters that would lie on each other stand below each other.
    std::string end_marks() {
        std::stable_sort(ends_.begin(), ends_.end(),
                         [](const EndMark& one, const EndMark& other) { return one.spot.y < other.spot.y; });
        std::string text;
        for (size_t i = 0; i < ends_.size(); ++i) {
            Spot& spot = ends_[i].spot;
            for (size_t above = 0; above < i; ++above) {
                const Spot& other = ends_[above].spot;
                const bool is_beside = std::abs(other.x - spot.x) < kLetterHeight;
                if (is_beside && spot.y < other.y + kLetterHeight) spot.y = other.y + kLetterHeight;
            }
            text += text_at(spot, "start", "mark " + colour_class(ends_[i].run), plot_.curves[ends_[i].run].mark);
        }
        return text;
    }

    std::string legend() const {
        std::string text;
        for (size_t run = 0; run < plot_.curves.size(); ++run) {
            const double y = frame_bottom() + kBelow + kLegendLine * (static_cast<double>(run) + 0.5);
            text += stroke(run, "M" + coordinate(kLeft) + " " + coordinate(y) + "h48");
            text += text_at({kLeft + 58, y + 5}, "start", "mark " + colour_class(run), plot_.curves[run].mark);
            text += text_at({kLeft + 84, y + 5}, "start", "ink", plot_.curves[run].name);
        }
        return text;
    }

    const Plot& plot_;
    PlotAxes axes_;
    std::vector<EndMark> ends_;
};

}  // namespace

std::string plot_svg(const Plot& plot) {
    return Picture(plot).draw();
}

}  // namespace vpp
