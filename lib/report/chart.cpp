#include "report/chart.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/markup.hpp"
#include "base/units.hpp"

namespace vpp {

namespace {

// In units of the drawing.
constexpr double kWidth = 640, kHeight = 270, kLeft = 66, kRight = 14, kTop = 12, kBottom = 32;
constexpr size_t kBuckets = 600;
constexpr int kYTicks = 5, kXTicks = 8;

struct Bounds {
    double low = std::numeric_limits<double>::infinity();
    double high = -std::numeric_limits<double>::infinity();
    void take(double value) {
        if (!std::isfinite(value)) return;
        low = std::min(low, value);
        high = std::max(high, value);
    }
    bool is_empty() const { return low > high; }
};

double byte_unit(double bytes) {
    double unit = 1;
    while (bytes >= 1024 * unit) unit *= 1024;
    return unit;
}

/// Without zeros behind the last decimal.
std::string significant(double value, int digits) {
    return formatted(("%." + std::to_string(digits) + "g").c_str(), value);
}

/// "2.5 K", "300"
std::string short_count(double value, int digits) {
    static constexpr const char* kPrefixes[] = {"", " K", " M", " G", " T", " P"};
    size_t place = 0;
    for (; std::abs(value) >= 1000 && place + 1 < std::size(kPrefixes); ++place) value /= 1000;
    return significant(value, digits) + kPrefixes[place];
}

/// With one decimal as everywhere, or with more.
std::string precise_bytes_text(double bytes, int decimals) {
    static constexpr const char* kUnits[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB"};
    if (decimals <= 1) return bytes_text(static_cast<int64_t>(bytes));
    size_t place = 0;
    for (; bytes >= 1024 && place + 1 < std::size(kUnits); ++place) bytes /= 1024;
    return fixed_text(bytes, decimals) + kUnits[place];
}

/// That of 10; 0 for what has none.
int exponent_of(double value) {
    return value > 0 && std::isfinite(value) ? static_cast<int>(std::floor(std::log10(value) + 1e-6)) : 0;
}

/// The text of a tick whose neighbours are `distance` away or more; 0: it has none.
std::string tick_text(double tick, double distance, Quantity quantity) {
    const int digits = distance > 0 ? std::min(17, exponent_of(std::abs(tick)) - exponent_of(distance) + 1) : 0;
    switch (quantity) {
        case Quantity::Bytes:
            if (!(std::abs(tick) < 9e18)) break;
            return precise_bytes_text(tick, -exponent_of(distance / byte_unit(tick)));
        case Quantity::Count:
            return short_count(tick, std::max(4, digits));
        case Quantity::Share:
            return significant(100 * tick, std::max(3, digits)) + " %";
        case Quantity::Plain:
            return significant(tick, std::max(4, digits));
    }
    return "-";
}

std::string json_number(double value) {
    return std::isfinite(value) ? formatted("%.10g", value) : "null";
}

std::string json_numbers(const std::vector<double>& values) {
    std::string text;
    for (const double value : values) text += (text.empty() ? "" : ",") + json_number(value);
    return "[" + text + "]";
}

class ChartDrawing {
  public:
    explicit ChartDrawing(const Chart& chart) : chart_(chart) {
        for (ChartCurve curve : chart.curves) {
            num_points_ = std::max(num_points_, curve.curve.size());
            curve.curve = thinned(curve.curve, kBuckets);
            num_drawn_ = std::max(num_drawn_, curve.curve.size());
            curves_.push_back(std::move(curve));
        }
        for (const ChartCurve& curve : curves_) {
            for (size_t i = 0; i < curve.curve.size(); ++i) {
                x_.take(curve.curve.x[i]);
                y_.take(curve.curve.y[i]);
            }
        }
    }

    std::string draw() {
        if (x_.is_empty() || y_.is_empty()) return "";
        if (chart_.from_zero) y_.low = std::min(0.0, y_.low);
        x_ticks_ = axis_ticks(x_.low, x_.high, kXTicks);
        y_ticks_ = quantity_ticks(y_.low, y_.high, kYTicks, chart_.quantity);
        y_.low = std::min(y_.low, y_ticks_.front());
        y_.high = std::max(y_.high, y_ticks_.back());
        std::string text = "<figure class=\"card chart\">\n<figcaption>" + escaped(chart_.title) + note() +
                           "</figcaption>\n<svg viewBox=\"0 0 640 270\" role=\"img\" aria-label=\"" +
                           escaped(chart_.title) + "\" data-box=\"" + box() + "\">\n";
        text += grid();
        for (const ChartCurve& curve : curves_) text += path(curve);
        text += "<line class=\"hair\" x1=\"0\" x2=\"0\" y1=\"" + coordinate(kTop) + "\" y2=\"" +
                coordinate(kHeight - kBottom) + "\" visibility=\"hidden\"></line>\n</svg>\n";
        return text + legend() + "</figure>\n";
    }

  private:
    double x(double value) const {
        const double range = x_.high > x_.low ? x_.high - x_.low : 1;
        return kLeft + (value - x_.low) / range * (kWidth - kLeft - kRight);
    }
    double y(double value) const {
        const double range = y_.high > y_.low ? y_.high - y_.low : 1;
        return kHeight - kBottom - (value - y_.low) / range * (kHeight - kTop - kBottom);
    }

    std::string note() const {
        std::string note = chart_.note;
        if (num_drawn_ < num_points_) {
            note += std::string(note.empty() ? "" : "; ") + "of " + std::to_string(num_points_) +
                    " steps the smallest and largest of each group are drawn";
        }
        return note.empty() ? "" : " <small>" + escaped(note) + "</small>";
    }

    /// What the page's script needs to find the step below the mouse.
    std::string box() const {
        return json_number(kLeft) + " " + json_number(kWidth - kRight) + " " + json_number(x_.low) + " " +
               json_number(x_.high) + " " + std::to_string(static_cast<int>(chart_.quantity));
    }

    std::string grid() const {
        std::string text;
        const std::vector<std::string> y_texts = tick_texts(y_ticks_, chart_.quantity);
        for (size_t i = 0; i < y_ticks_.size(); ++i) {
            const double tick = y_ticks_[i];
            const std::string at = coordinate(y(tick));
            text += "<line class=\"grid\" x1=\"" + coordinate(kLeft) + "\" x2=\"" + coordinate(kWidth - kRight) +
                    "\" y1=\"" + at + "\" y2=\"" + at + "\"></line><text class=\"tick\" x=\"" + coordinate(kLeft - 8) +
                    "\" y=\"" + coordinate(y(tick) + 4) + "\" text-anchor=\"end\">" + escaped(y_texts[i]) + "</text>\n";
        }
        const std::vector<std::string> x_texts = tick_texts(x_ticks_, Quantity::Count);
        for (size_t i = 0; i < x_ticks_.size(); ++i) {
            const double tick = x_ticks_[i];
            if (tick < x_.low || tick > x_.high || tick != std::floor(tick)) continue;  // steps are whole
            text += "<text class=\"tick\" x=\"" + coordinate(x(tick)) + "\" y=\"" + coordinate(kHeight - kBottom + 18) +
                    "\" text-anchor=\"middle\">" + escaped(x_texts[i]) + "</text>\n";
        }
        return text + "<text class=\"tick\" x=\"" + coordinate(kLeft - 8) + "\" y=\"" +
               coordinate(kHeight - kBottom + 18) + "\" text-anchor=\"end\">step</text>\n";
    }

    std::string path(const ChartCurve& curve) const {
        std::string way, dots;
        bool is_down = false;
        for (size_t i = 0; i < curve.curve.size(); ++i) {
            if (!std::isfinite(curve.curve.y[i])) {
                is_down = false;
                continue;
            }
            const std::string left = coordinate(x(curve.curve.x[i])), top = coordinate(y(curve.curve.y[i]));
            way += (is_down ? "L" : "M") + left + " " + top;
            is_down = true;
            if (curve.dotted) dots += "<circle r=\"3\" cx=\"" + left + "\" cy=\"" + top + "\"></circle>";
        }
        // One point has no line; a dot shows it.
        if (curve.curve.size() == 1 && !curve.dotted && is_down) {
            dots = "<circle r=\"3\" cx=\"" + coordinate(x(curve.curve.x[0])) + "\" cy=\"" +
                   coordinate(y(curve.curve.y[0])) + "\"></circle>";
        }
        const std::string kind = curve.faint ? " faint" : curve.dotted ? " dotted" : "";
        std::string text = "<g class=\"curve c" + std::to_string(curve.colour) + kind + "\"";
        if (!curve.faint) {
            text += " data-name=\"" + escaped(curve.name) + "\" data-x=\"" + json_numbers(curve.curve.x) +
                    "\" data-y=\"" + json_numbers(curve.curve.y) + "\"";
        }
        return text + "><path d=\"" + way + "\"></path>" + dots + "</g>\n";
    }

    std::string legend() const {
        if (curves_.size() == 1 && curves_[0].name == chart_.note) return "";  // the caption says it
        std::string text = "<ul class=\"legend\">";
        for (const ChartCurve& curve : curves_) {
            if (curve.faint) continue;
            text += "<li class=\"c" + std::to_string(curve.colour) + (curve.dotted ? " dotted" : "") + "\"><i></i>" +
                    escaped(curve.name) + "</li>";
        }
        return text + "</ul>\n";
    }

    const Chart& chart_;
    std::vector<ChartCurve> curves_;
    Bounds x_, y_;
    std::vector<double> x_ticks_, y_ticks_;
    size_t num_points_ = 0, num_drawn_ = 0;
};

}  // namespace

std::vector<double> axis_ticks(double low, double high, int most) {
    if (!(high > low)) return {low};
    const double rough = (high - low) / most;
    const double magnitude = std::pow(10, std::floor(std::log10(rough)));
    double step = magnitude;
    for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
        step = factor * magnitude;
        if (step >= rough * (1 - 1e-9)) break;
    }
    std::vector<double> ticks;
    const double first = std::floor(low / step + 1e-9), last = std::ceil(high / step - 1e-9);
    // Where a step vanishes beside the numbers themselves no tick would move on.
    if (!(last - first <= 2 * most) || first + 1 == first || last + 1 == last) return {low, high};
    const int count = static_cast<int>(last - first);
    for (int i = 0; i <= count; ++i) ticks.push_back((first + i) * step);
    return ticks;
}

std::vector<double> quantity_ticks(double low, double high, int most, Quantity quantity) {
    const double unit = quantity == Quantity::Bytes ? byte_unit(high) : 1;
    std::vector<double> ticks = axis_ticks(low / unit, high / unit, most);
    for (double& tick : ticks) tick *= unit;
    return ticks;
}

std::string quantity_text(double value, Quantity quantity) {
    return tick_text(value, 0, quantity);
}

std::vector<std::string> tick_texts(const std::vector<double>& ticks, Quantity quantity) {
    std::vector<std::string> texts;
    for (size_t i = 0; i < ticks.size(); ++i) {
        double distance = i > 0 ? ticks[i] - ticks[i - 1] : 0;
        if (i + 1 < ticks.size()) distance = i > 0 ? std::min(distance, ticks[i + 1] - ticks[i]) : ticks[1] - ticks[0];
        texts.push_back(tick_text(ticks[i], distance, quantity));
    }
    return texts;
}

std::string draw_chart(const Chart& chart) {
    return ChartDrawing(chart).draw();
}

}  // namespace vpp
