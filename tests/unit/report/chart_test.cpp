#include "report/chart.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace vpp {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

size_t count_of(const std::string& text, const std::string& part) {
    size_t count = 0;
    for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
    return count;
}

ChartCurve curve_of(std::vector<double> y, const std::string& name = "curve") {
    ChartCurve curve;
    curve.name = name;
    for (size_t i = 0; i < y.size(); ++i) curve.curve.add(static_cast<double>(i + 1), y[i]);
    return curve;
}

TEST(Chart, TicksAreRoundAndCoverTheRange) {
    EXPECT_EQ(axis_ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
    EXPECT_EQ(axis_ticks(1.9, 5.4, 5), (std::vector<double>{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(axis_ticks(-1, 1, 2), (std::vector<double>{-1, 0, 1}));
    EXPECT_EQ(axis_ticks(3, 3, 5), (std::vector<double>{3}));
    EXPECT_EQ(axis_ticks(1e18, 1e18 + 256, 5).size(), 2u) << "steps that vanish beside the numbers";
    for (const double high : {1e-300, 0.37, 1e9, 1e300}) {
        const auto ticks = axis_ticks(0, high, 5);
        EXPECT_LE(ticks.size(), 7u);
        EXPECT_GE(ticks.back(), high * (1 - 1e-9));
    }
}

TEST(Chart, QuantitiesAreReadable) {
    EXPECT_EQ(quantity_text(0.00025, Quantity::Plain), "0.00025");
    EXPECT_EQ(quantity_text(20000, Quantity::Count), "20 K");
    EXPECT_EQ(quantity_text(300, Quantity::Count), "300");
    EXPECT_EQ(quantity_text(0.205, Quantity::Share), "20.5 %");
    EXPECT_EQ(quantity_text(1 << 30, Quantity::Bytes), "1.0 GiB");
    EXPECT_EQ(quantity_text(1e300, Quantity::Bytes), "-");
}

TEST(Chart, ACurveIsAPathWithItsNumbers) {
    const std::string text = draw_chart({"Loss", "a note", Quantity::Plain, false, {curve_of({3, 2, 1.5})}});
    EXPECT_NE(text.find("<figcaption>Loss <small>a note</small></figcaption>"), std::string::npos) << text;
    EXPECT_NE(text.find("data-name=\"curve\" data-x=\"[1,2,3]\" data-y=\"[3,2,1.5]\""), std::string::npos) << text;
    EXPECT_NE(text.find("<path d=\"M66 12L346 162.67L626 238\">"), std::string::npos) << text;
}

TEST(Chart, WhatIsNotFiniteIsAGap) {
    const std::string text = draw_chart({"Loss", "", Quantity::Plain, false, {curve_of({3, 2, kNone, 1, 2})}});
    EXPECT_NE(text.find("[3,2,null,1,2]"), std::string::npos) << text;
    const size_t path = text.find("<path d=");
    EXPECT_EQ(count_of(text.substr(path, text.find('>', path) - path), "M"), 2u) << text;
}

TEST(Chart, NothingToDrawIsNothing) {
    EXPECT_EQ(draw_chart({"Loss", "", Quantity::Plain, false, {}}), "");
    EXPECT_EQ(draw_chart({"Loss", "", Quantity::Plain, false, {curve_of({kNone, kNone})}}), "");
}

TEST(Chart, OnePointAndOneValueAreDrawn) {
    EXPECT_EQ(count_of(draw_chart({"Loss", "", Quantity::Plain, true, {curve_of({0})}}), "<circle"), 1u);
    EXPECT_NE(draw_chart({"Loss", "", Quantity::Plain, false, {curve_of({2, 2, 2})}}).find("<path"), std::string::npos);
}

TEST(Chart, FaintCurvesAreNotInTheLegend) {
    ChartCurve faint = curve_of({1, 2}, "raw");
    faint.faint = true;
    const std::string text = draw_chart({"Loss", "", Quantity::Plain, false, {faint, curve_of({1, 2}, "mean")}});
    EXPECT_EQ(count_of(text, "<li class"), 1u);
    EXPECT_EQ(count_of(text, "raw"), 0u);
}

TEST(Chart, NamesAreText) {
    const std::string text = draw_chart({"<b>", "<em>", Quantity::Plain, false, {curve_of({1, 2}, "\"><script>")}});
    EXPECT_EQ(count_of(text, "<b>") + count_of(text, "<em>") + count_of(text, "<script"), 0u) << text;
    EXPECT_EQ(count_of(text, "&quot;&gt;&lt;script&gt;"), 2u);
}

TEST(Chart, BytesHaveTicksOfTheirUnit) {
    const std::string text = draw_chart({"Memory", "", Quantity::Bytes, true, {curve_of({400 << 20, 410 << 20})}});
    for (const char* tick : {">100.0 MiB<", ">500.0 MiB<"}) EXPECT_NE(text.find(tick), std::string::npos) << text;
}

TEST(Chart, ThinningIsSaid) {
    std::vector<double> many(5000, 1);
    many[10] = 2;
    EXPECT_NE(draw_chart({"Loss", "", Quantity::Plain, false, {curve_of(many)}}).find("of 5000 steps the smallest"),
              std::string::npos);
    EXPECT_EQ(draw_chart({"Loss", "", Quantity::Plain, false, {curve_of({1, 2})}}).find("smallest"), std::string::npos);
}

}  // namespace
}  // namespace vpp
