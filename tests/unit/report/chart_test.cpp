#include "report/chart.hpp"

#include <gtest/gtest.h>

#include <algorithm>
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

TEST(Chart, TicksAreToldApart) {
    using Texts = std::vector<std::string>;
    const double million = 1e6, gib = 1 << 30;
    EXPECT_EQ(tick_texts({million, million + 5, million + 10}, Quantity::Count),
              (Texts{"1 M", "1.000005 M", "1.00001 M"}));
    EXPECT_EQ(tick_texts({2, 2.00001, 2.00002}, Quantity::Plain), (Texts{"2", "2.00001", "2.00002"}));
    EXPECT_EQ(tick_texts({0.5, 0.50002}, Quantity::Share), (Texts{"50 %", "50.002 %"}));
    EXPECT_EQ(tick_texts({10 * gib, 10.01 * gib}, Quantity::Bytes), (Texts{"10.00 GiB", "10.01 GiB"}));
    EXPECT_EQ(tick_texts({1000.5, 1001, 1001.5}, Quantity::Plain), (Texts{"1000.5", "1001", "1001.5"}));
    EXPECT_EQ(tick_texts({0, 0.1, 0.2}, Quantity::Plain), (Texts{"0", "0.1", "0.2"})) << "no more than it takes";
    EXPECT_EQ(tick_texts({0, gib / 2, gib}, Quantity::Bytes), (Texts{"0 B", "512.0 MiB", "1.0 GiB"}));
    EXPECT_EQ(tick_texts({20000}, Quantity::Count), Texts{"20 K"});
    EXPECT_EQ(tick_texts({0.01, 1, 10000}, Quantity::Plain), (Texts{"0.01", "1", "1e+04"})) << "logarithmic";
    EXPECT_EQ(tick_texts({-1e300, 1e300}, Quantity::Bytes), (Texts{"-", "-"}));
    EXPECT_TRUE(tick_texts({}, Quantity::Plain).empty());
}

TEST(Chart, TicksOfAllCurvesAreToldApart) {
    const Quantity all[] = {Quantity::Plain, Quantity::Count, Quantity::Bytes, Quantity::Share};
    for (const double low : {0.25, 2.0, 999.0, 1e6, 1e10}) {
        for (const double share : {1e-9, 1e-6, 1e-3, 0.1, 10.0}) {
            for (const Quantity quantity : all) {
                const double high = low * (1 + share);
                if (quantity == Quantity::Bytes && high - low < 10) continue;  // bytes are whole
                std::vector<std::string> texts = tick_texts(quantity_ticks(low, high, 5, quantity), quantity);
                EXPECT_EQ(std::adjacent_find(texts.begin(), texts.end()), texts.end()) << low << " " << high;
            }
        }
    }
}

TEST(Chart, BothAxesTellTicksApart) {
    ChartCurve curve = curve_of({2.00001, 2.00002, 2.00003});
    for (double& step : curve.curve.x) step += 1e6;
    const std::string text = draw_chart({"Loss", "", Quantity::Plain, false, {curve}});
    for (const char* tick : {">2.00001<", ">2.00003<", ">1.000001 M<", ">1.000003 M<"}) {
        EXPECT_NE(text.find(tick), std::string::npos) << tick << text;
    }
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
