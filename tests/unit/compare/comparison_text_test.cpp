#include "compare/comparison_text.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "unit/compare/runs.hpp"

namespace vpp {
namespace {

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != text.npos;
}

constexpr const char* kThreeRuns =
    R"(A  runs/sweep/optimizer.lr=0.1
B  runs/sweep/optimizer.lr=0.2
C  runs/sweep/optimizer.lr=0.4

run   lr  state     steps  last loss  best loss  validation             rate
A    0.1  finished  40/40     0.0750     0.0750           -  1.0 K samples/s
B    0.2  finished  25/25     0.0800     0.0800           -  1.0 K samples/s
C    0.4  finished    6/6     4.0000     2.5000           -  1.0 K samples/s

run         work  waiting  bubble  simulated     memory  time
A    2.0 GFLOP/s     25 %    24 %       20 %  300.0 MiB   1 s
B    2.0 GFLOP/s     25 %    24 %       20 %  300.0 MiB   1 s
C    2.0 GFLOP/s     25 %    24 %       20 %  300.0 MiB   0 s

train/loss
   4 |         C
     |        .
     |       C
     |
   3 |A
     |.. .C
     | .C
     | .
     | .
   2 |B.
     | ..
     | .A
     |  ..
   1 |  B A
     |   .B.AA
     |     .BB.A.A.A
     |        .B.B.B.B.B.B.BA.A.A.A.A.A.A.AA.A.A.A.A
   0 |                             .B.B.B.BB.B.B.B.B.A.A.AA.A.A.A.A.A.A.AA.A.A.A
     +-----------------+------------------+-----------------+------------------+
step                  10                 20                30                 40
C: 1 value is not finite, at step 4
)";

TEST(ComparisonText, ThreeRunsToTheLetter) {
    const Comparison comparison =
        compare_runs({test::run_with("runs/sweep/optimizer.lr=0.1", test::falling(3, 40), "0.1"),
                      test::run_with("runs/sweep/optimizer.lr=0.2", test::falling(2, 25), "0.2"),
                      test::run_with("runs/sweep/optimizer.lr=0.4", {3, 2.5, 2.8, std::nan(""), 3.5, 4}, "0.4")});
    EXPECT_EQ(comparison_text(comparison, "train/loss", {80, false}), kThreeRuns);
}

TEST(ComparisonText, OneRunIsShownWithoutSettings) {
    const std::string text = comparison_text(compare_runs({test::run_with("runs/a", {3, 2})}), "train/loss", {});
    EXPECT_TRUE(text.starts_with("A  runs/a\n\nrun  state"));
    EXPECT_FALSE(has(text, "The plans of these runs say the same"));
}

TEST(ComparisonText, EqualPlansAreSaid) {
    const RecordedRun run = test::run_with("a", {3, 2});
    EXPECT_TRUE(has(comparison_table(compare_runs({run, run}), {}), "The plans of these runs say the same.\n"));
}

TEST(ComparisonText, KeysThatEndAlikeAreNotShortened) {
    RecordedRun one = test::run_with("a", {3}), two = test::run_with("b", {3}, "0.2");
    EXPECT_TRUE(has(comparison_table(compare_runs({one, two}), {}), "run   lr  state"));
    one.settings.emplace_back("other.lr", "1");
    const std::string text = comparison_table(compare_runs({one, two}), {});
    EXPECT_TRUE(has(text, "optimizer.lr  other.lr"));
    EXPECT_TRUE(has(text, "         0.2         -"));
}

TEST(ComparisonText, ManySettingsHaveARowEach) {
    RecordedRun one = test::run_with("a", {3}), two = test::run_with("b", {3}, "0.2");
    for (int i = 0; i < 7; ++i) {
        one.settings.emplace_back("section.key" + std::to_string(i), "left");
        two.settings.emplace_back("section.key" + std::to_string(i), "right");
    }
    const std::string text = comparison_table(compare_runs({one, two}), {80, false});
    EXPECT_TRUE(has(text, "setting       A     B\noptimizer.lr  0.1   0.2\nsection.key0  left  right\n")) << text;
    EXPECT_TRUE(has(text, "run  state")) << text;
}

TEST(ComparisonText, HolesAndMissingRunsAreSaid) {
    std::vector<RecordedRun> runs(30, test::run_with("a", {3, std::nan(""), 2}));
    const std::string text = comparison_text(compare_runs(runs), "train/loss", {80, false});
    EXPECT_TRUE(has(text, "AD: 1 value is not finite, at step 2\n"));
    EXPECT_TRUE(text.ends_with("the first 26 of 30 runs are drawn\n"));
}

TEST(ComparisonText, FailuresAreTold) {
    RecordedRun failed = test::run_with("a", {3, 2}), stopped = test::run_with("b", {3, 2});
    failed.end = RunEnd{79, "rank 0: step 2: the loss is nan and the gradient norm nan;\nlower optimizer.lr"};
    stopped.end = RunEnd{85, "as asked"};
    const std::string text = comparison_table(compare_runs({failed, stopped}), {60, false});
    EXPECT_TRUE(has(text, "A    failed with 79")) << text;
    EXPECT_TRUE(
        text.ends_with("\n\nA failed with 79: rank 0: step 2: the loss is nan and the\n"
                       "  gradient norm nan; lower optimizer.lr\n"))
        << text;
}

TEST(ComparisonText, HostileTextCannotSteerATerminal) {
    RecordedRun run = test::run_with("a", {3, 2});
    run.name = "a\x1b[2J";
    run.settings.emplace_back("x\x1b[2J", "y\x1b[2J");
    const std::string text = comparison_text(compare_runs({run, test::run_with("b", {1})}), "train/loss", {});
    EXPECT_EQ(text.find('\x1b'), text.npos);
    EXPECT_TRUE(has(text, "A  a?[2J\n"));
}

}  // namespace
}  // namespace vpp
