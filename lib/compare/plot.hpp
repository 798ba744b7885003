#pragma once
// Curves of several runs in one frame, and the axes of that frame; drawn by plot_text and plot_svg.
#include <string>
#include <vector>

#include "report/chart.hpp"
#include "report/thinning.hpp"

namespace vpp {

struct PlotCurve {
    std::string mark;  ///< stands at the curve: "A"
    std::string name;  ///< any text
    Curve curve;
};

struct Plot {
    std::string title;
    std::string note;  ///< behind the title; may be empty
    Quantity quantity = Quantity::Plain;
    std::vector<PlotCurve> curves;
};

/// Whether a value has a place in a plot: it is a number that axes can bear.
bool is_drawn(double value);

/// Where steps and values lie in a frame. The axis of values is logarithmic where positive plain numbers span more than
/// two decades, so that one run that goes astray does not flatten the others.
class PlotAxes {
  public:
    /// So many ticks at most, about.
    PlotAxes(const Plot& plot, int x_ticks, int y_ticks);

    /// Whether there is nothing to draw.
    bool is_empty() const { return !(y_low_ <= y_high_); }
    bool is_logarithmic() const { return is_logarithmic_; }
    /// From 0, the left end, to 1.
    double x(double step) const;
    /// From 0, the lower end, to 1. Requires: is_drawn(value).
    double y(double value) const;
    /// Whole steps of the curves; round values that begin and end the axis. Empty when there is nothing to draw.
    const std::vector<double>& x_ticks() const { return x_ticks_; }
    const std::vector<double>& y_ticks() const { return y_ticks_; }

  private:
    void take(const Curve& curve);
    void set_x_ticks(int most);
    void set_y_ticks(int most, Quantity quantity);

    double x_low_, x_high_, y_low_, y_high_;
    bool is_logarithmic_ = false;
    std::vector<double> x_ticks_, y_ticks_;
};

}  // namespace vpp
