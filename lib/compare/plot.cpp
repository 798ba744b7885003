#include "compare/plot.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace vpp {

namespace {

constexpr double kLargest = 1e300;         // differences of such values are numbers too
constexpr double kMostOnLinearAxis = 100;  // largest / smallest value
constexpr double kEndless = std::numeric_limits<double>::infinity();

/// The powers of ten that cover low to high, every one or every so many-th.
std::vector<double> powers_of_ten(double low, double high, int most) {
    const int first = static_cast<int>(std::floor(std::log10(low)));
    const int last = static_cast<int>(std::ceil(std::log10(high)));
    const int stride = std::max(1, (last - first + most - 1) / most);
    std::vector<double> powers;
    for (int power = first; power < last + stride; power += stride) powers.push_back(std::pow(10, power));
    return powers;
}

double share_of(double value, double low, double high) {
    return high > low ? (value - low) / (high - low) : 0.5;
}

}  // namespace

bool is_drawn(double value) {
    return std::abs(value) < kLargest;  // false for what is no number
}

PlotAxes::PlotAxes(const Plot& plot, int x_ticks, int y_ticks)
    : x_low_(kEndless), x_high_(-kEndless), y_low_(kEndless), y_high_(-kEndless) {
    for (const PlotCurve& curve : plot.curves) take(curve.curve);
    if (is_empty()) return;
    is_logarithmic_ = plot.quantity == Quantity::Plain && y_low_ > 0 && y_high_ > kMostOnLinearAxis * y_low_;
    set_x_ticks(x_ticks);
    set_y_ticks(y_ticks, plot.quantity);
}

void PlotAxes::take(const Curve& curve) {
    for (size_t i = 0; i < curve.size(); ++i) {
        x_low_ = std::min(x_low_, curve.x[i]);
        x_high_ = std::max(x_high_, curve.x[i]);
        if (!is_drawn(curve.y[i])) continue;
        y_low_ = std::min(y_low_, curve.y[i]);
        y_high_ = std::max(y_high_, curve.y[i]);
    }
}

void PlotAxes::set_x_ticks(int most) {
    for (const double tick : axis_ticks(x_low_, x_high_, most)) {
        if (tick >= x_low_ && tick <= x_high_ && tick == std::floor(tick)) x_ticks_.push_back(tick);
    }
}

void PlotAxes::set_y_ticks(int most, Quantity quantity) {
    y_ticks_ = is_logarithmic_ ? powers_of_ten(y_low_, y_high_, most) : quantity_ticks(y_low_, y_high_, most, quantity);
    y_low_ = std::min(y_low_, y_ticks_.front());
    y_high_ = std::max(y_high_, y_ticks_.back());
}

double PlotAxes::x(double step) const {
    return share_of(step, x_low_, x_high_);
}

double PlotAxes::y(double value) const {
    if (!is_logarithmic_) return share_of(value, y_low_, y_high_);
    return share_of(std::log10(value), std::log10(y_low_), std::log10(y_high_));
}

}  // namespace vpp
