#include "compare/plot_text.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "compare/run_curves.hpp"
#include "unit/compare/runs.hpp"

namespace vpp {
namespace {

std::string drawn(std::vector<RecordedRun> runs, int width = 60, bool colour = false) {
    return plot_text(plot_runs(compare_runs(std::move(runs)), "train/loss"), {width, colour});
}

size_t widest_line(const std::string& text) {
    std::istringstream lines(text);
    size_t widest = 0;
    for (std::string line; std::getline(lines, line);) widest = std::max(widest, line.size());
    return widest;
}

auto letters(const std::string& text, char letter) {
    return std::count(text.begin(), text.end(), letter);
}

std::string without_escapes(const std::string& text) {
    std::string plain;
    for (size_t at = 0; at < text.size(); ++at) {
        if (text[at] == '\x1b') {
            at = text.find('m', at);
        } else {
            plain += text[at];
        }
    }
    return plain;
}

TEST(PlotText, TwoEqualCurvesToTheLetter) {
    const RecordedRun run = test::run_with("a", test::falling(3, 40));
    EXPECT_EQ(drawn({run, run}), R"(train/loss
   3 |A
     |.
     |.
     |.
     |.
     | .
   2 | .
     | .
     | .
     | B
     |  .
   1 |   B
     |    .
     |    A
     |     B.B
     |        A.ABA.A
     |               BA.ABA.ABA.AB.BAB.BAB.BAB.BAB
   0 |                                            .BA.ABA.AB
     +------------+-------------+------------+-------------+
step             10            20           30            40
)");
}

TEST(PlotText, ManyDecadesToTheLetter) {
    EXPECT_EQ(drawn({test::run_with("x", test::falling(1e4, 400)), test::run_with("b", test::falling(2, 25))}, 80),
              R"(train/loss; logarithmic; long curves are means over a fiftieth of their steps
1e+04 |A
      | A
      |  A
      |  AA
      |    AAAA
      |        AAAAAAAAA
  100 |                 AAAAAAAAAAAAAAAAAAAA
      |                                    AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
      |
      |
      |B
    1 |B
      |BB
      | BB
      |  BBB
      |
      |
 0.01 |
      +------------------+-----------------+-----------------+-----------------+
 step                   100               200               300              400
)");
}

TEST(PlotText, TheFrameFitsThePage) {
    for (const int width : {40, 80, 133}) {
        const std::string text = drawn({test::run_with("a", test::falling(3, 90))}, width);
        EXPECT_EQ(widest_line(text), static_cast<size_t>(width)) << text;
    }
}

TEST(PlotText, ColourChangesNoCharacter) {
    const std::vector<RecordedRun> runs{test::run_with("a", test::falling(3, 30)),
                                        test::run_with("b", test::falling(2, 50))};
    const std::string coloured = drawn(runs, 80, true), plain = drawn(runs, 80, false);
    EXPECT_EQ(without_escapes(coloured), plain);
    EXPECT_NE(coloured, plain);
    EXPECT_EQ(plain.find('\x1b'), plain.npos);
}

TEST(PlotText, EqualCurvesTakeTurns) {
    const std::string text =
        drawn({test::run_with("a", test::falling(3, 60)), test::run_with("b", test::falling(3, 60))});
    EXPECT_NEAR(static_cast<double>(letters(text, 'A')), static_cast<double>(letters(text, 'B')), 8);
    EXPECT_GT(letters(text, 'A'), 15);
}

TEST(PlotText, AValueThatIsNoneLeavesAHole) {
    const std::vector<double> whole{4, 4, 4, 4, 4}, holed{4, 4, std::nan(""), 4, 4};
    EXPECT_GT(letters(drawn({test::run_with("a", whole)}), '.'),
              letters(drawn({test::run_with("a", holed)}), '.') + 20);
    EXPECT_EQ(letters(drawn({test::run_with("a", holed)}), 'A'), 4);
}

TEST(PlotText, WithoutAFiniteValueItSaysSo) {
    const std::string said = "train/loss: nothing to draw, no value is finite\n";
    EXPECT_EQ(drawn({test::run_with("a", {})}), said);
    EXPECT_EQ(drawn({test::run_with("a", {std::nan(""), HUGE_VAL})}), said);
    EXPECT_EQ(drawn({}), said);
}

TEST(PlotText, OneStepIsOneLetter) {
    EXPECT_EQ(letters(drawn({test::run_with("a", {2})}), 'A'), 1);
}

TEST(PlotText, MoreRunsThanLettersAreLeftOut) {
    const std::vector<RecordedRun> runs(40, test::run_with("a", {3, 2, 1}));
    const std::string text = drawn(runs, 120);
    EXPECT_EQ(widest_line(text), 120u);
}

}  // namespace
}  // namespace vpp
