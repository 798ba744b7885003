#include "compare/plot.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace vpp {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

Plot plot_of(std::vector<double> values, Quantity quantity = Quantity::Plain) {
    Plot plot{"loss", "", quantity, {{"A", "a", {}}}};
    for (const double value : values) {
        Curve& curve = plot.curves[0].curve;
        curve.add(static_cast<double>(curve.size() + 1), value);
    }
    return plot;
}

TEST(PlotAxes, CurvesFillTheFrame) {
    const PlotAxes axes(plot_of({4, 3, 1, 0}), 6, 5);
    EXPECT_FALSE(axes.is_logarithmic());
    EXPECT_EQ(axes.x(1), 0);
    EXPECT_EQ(axes.x(4), 1);
    EXPECT_EQ(axes.y(0), 0);
    EXPECT_EQ(axes.y(4), 1);
    EXPECT_EQ(axes.y(1), 0.25);
    EXPECT_EQ(axes.y_ticks(), (std::vector<double>{0, 1, 2, 3, 4}));
    EXPECT_EQ(axes.x_ticks(), (std::vector<double>{1, 2, 3, 4}));  // steps are whole
}

TEST(PlotAxes, ValuesOverManyDecadesAreLogarithmic) {
    const PlotAxes axes(plot_of({1000, 1, 0.1}), 6, 5);
    EXPECT_TRUE(axes.is_logarithmic());
    EXPECT_NEAR(axes.y(1), 0.25, 1e-12);
    EXPECT_EQ(axes.y_ticks().size(), 5u);
    EXPECT_FALSE(PlotAxes(plot_of({10, 1, 0.1}), 6, 5).is_logarithmic());
    EXPECT_FALSE(PlotAxes(plot_of({1000, 1, 0}), 6, 5).is_logarithmic());
    EXPECT_FALSE(PlotAxes(plot_of({1000, 1}, Quantity::Count), 6, 5).is_logarithmic());
}

TEST(PlotAxes, ManyDecadesHaveFewTicks) {
    const PlotAxes axes(plot_of({1e-20, 1e30}), 6, 5);
    EXPECT_LE(axes.y_ticks().size(), 7u);
    EXPECT_GE(axes.y(1e-20), 0);
    EXPECT_LE(axes.y(1e30), 1);
}

TEST(PlotAxes, WhatIsNoNumberDoesNotCount) {
    const PlotAxes axes(plot_of({2, kNone, HUGE_VAL, -HUGE_VAL, 1.5e308, 1}), 6, 5);
    EXPECT_EQ(axes.y(2), 1);
    EXPECT_EQ(axes.y(1), 0);
    EXPECT_EQ(axes.x(6), 1);
    EXPECT_FALSE(is_drawn(kNone) || is_drawn(-HUGE_VAL) || is_drawn(1.5e308));
}

TEST(PlotAxes, NothingToDrawIsSaid) {
    EXPECT_TRUE(PlotAxes(plot_of({}), 6, 5).is_empty());
    EXPECT_TRUE(PlotAxes(plot_of({kNone}), 6, 5).is_empty());
    EXPECT_TRUE(PlotAxes(plot_of({kNone}), 6, 5).y_ticks().empty());
    EXPECT_FALSE(PlotAxes(plot_of({0}), 6, 5).is_empty());
}

TEST(PlotAxes, OneValueIsInTheMiddle) {
    const PlotAxes axes(plot_of({3}), 6, 5);
    EXPECT_EQ(axes.x(1), 0.5);
    EXPECT_EQ(axes.y(3), 0.5);
}

}  // namespace
}  // namespace vpp
