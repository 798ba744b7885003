#include "compare/plot_svg.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "compare/run_curves.hpp"
#include "unit/compare/runs.hpp"

namespace vpp {
namespace {

Plot plot_of_runs(std::vector<RecordedRun> runs) {
    return plot_runs(compare_runs(std::move(runs)), "train/loss");
}

size_t occurrences(const std::string& text, const std::string& part) {
    size_t found = 0;
    for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
    return found;
}

TEST(PlotSvg, EveryRunHasALineWithDashesALetterAndAName) {
    const std::string text = plot_svg(
        plot_of_runs({test::run_with("one", test::falling(3, 9)), test::run_with("two", test::falling(2, 5))}));
    EXPECT_TRUE(text.starts_with("<svg xmlns=") && text.ends_with("</svg>\n"));
    EXPECT_EQ(occurrences(text, "class=\"curve c0\" stroke-dasharray=\"none\""),
              2u);  // the curve and its line in the legend
    EXPECT_EQ(occurrences(text, "class=\"curve c1\" stroke-dasharray=\"10 5\""), 2u);
    EXPECT_EQ(occurrences(text, ">A</text>"), 2u);
    EXPECT_EQ(occurrences(text, ">B</text>"), 2u);
    EXPECT_EQ(occurrences(text, ">one</text>"), 1u);
    EXPECT_EQ(occurrences(text, ">two</text>"), 1u);
}

TEST(PlotSvg, NamesAreText) {
    const std::string text = plot_svg(plot_of_runs({test::run_with("</text><script>alert(1)</script>", {1, 2})}));
    EXPECT_EQ(occurrences(text, "<script"), 0u);
    EXPECT_EQ(occurrences(text, "&lt;script&gt;"), 1u);
}

TEST(PlotSvg, HolesBreakTheLine) {
    const auto moves = [](const std::vector<double>& losses) {
        const std::string text = plot_svg(plot_of_runs({test::run_with("a", losses)}));
        const size_t begin = text.find("stroke-dasharray=\"none\" d=\"") + 27;
        const std::string way = text.substr(begin, text.find('"', begin) - begin);
        EXPECT_EQ(way.find("nan"), way.npos);
        return occurrences(way, "M");
    };
    EXPECT_EQ(moves({3, 2, 2, 1}), 1u);
    EXPECT_EQ(moves({3, 2, std::nan(""), 2, 1}), 2u);
}

TEST(PlotSvg, LettersOfEqualEndsStandBelowEachOther) {
    const std::string text = plot_svg(plot_of_runs({test::run_with("a", {2, 1}), test::run_with("b", {2, 1})}));
    const auto height = [&](const char* kind) {
        const size_t at = text.find("y=\"", text.find(std::string("class=\"mark ") + kind));
        return std::stod(text.substr(at + 3));
    };
    EXPECT_GE(height("c1") - height("c0"), 14);
}

TEST(PlotSvg, WithoutAFiniteValueItSaysSo) {
    for (const std::string& text : {plot_svg(plot_of_runs({test::run_with("a", {})})), plot_svg(plot_of_runs({}))}) {
        EXPECT_EQ(occurrences(text, "nothing to draw"), 1u);
        EXPECT_EQ(occurrences(text, "nan"), 0u);
    }
}

}  // namespace
}  // namespace vpp
