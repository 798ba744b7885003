#include "compare/run_curves.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "unit/compare/runs.hpp"

namespace vpp {
namespace {

TEST(RunCurves, NumbersAreFoundByTheirNames) {
    RecordedRun run = test::run_with("a", {3, 2, 1});
    run.evaluations = {{2, 2.5, 64, 1}};
    run.steps[1].bubble_mean = std::nullopt;
    EXPECT_EQ(run_curve(run, "train/loss").y, (std::vector<double>{3, 2, 1}));
    EXPECT_EQ(run_curve(run, "train/loss").x, (std::vector<double>{1, 2, 3}));
    EXPECT_EQ(run_curve(run, "perf/bubble").x, (std::vector<double>{1, 3}));
    EXPECT_EQ(run_curve(run, "eval/loss").y, std::vector<double>{2.5});
    EXPECT_EQ(run_curve(run, "perf/tokens_per_s").size(), 0u);
    EXPECT_THROW(run_curve(run, "train/lost"), Error);
}

TEST(RunCurves, EveryNameGivesACurve) {
    const std::vector<std::string> names = curve_names();
    EXPECT_EQ(names.front(), "train/loss");
    for (const char* name : {"train/lr", "perf/samples_per_s", "memory/resident_bytes", "eval/loss"}) {
        EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name;
    }
    RecordedRun run = test::run_with("a", {1});
    StepEvent& step = run.steps.at(0);
    step.loss_scale = 1024;
    step.tokens_per_second = 1000;
    step.bubble_worst = 0.5;
    run.evaluations = {{1, 2.5, 64, 1, 0.75, 12.5}};
    for (const std::string& name : names) EXPECT_EQ(run_curve(run, name).size(), 1u) << name;
}

TEST(RunCurves, AxesFitTheirNumbers) {
    const Comparison comparison = compare_runs({test::run_with("a", {1})});
    EXPECT_EQ(plot_runs(comparison, "train/loss").quantity, Quantity::Plain);
    EXPECT_EQ(plot_runs(comparison, "memory/resident_bytes").quantity, Quantity::Bytes);
    EXPECT_EQ(plot_runs(comparison, "perf/bubble_worst").quantity, Quantity::Share);
    EXPECT_EQ(plot_runs(comparison, "perf/flops_per_s").quantity, Quantity::Count);
}

TEST(RunCurves, LongOnesAreMeansAndSaySo) {
    std::vector<double> noisy;
    for (int i = 0; i < 200; ++i) noisy.push_back(i % 2);
    const Plot plot = plot_runs(compare_runs({test::run_with("a", noisy), test::run_with("b", {5, 6})}), "train/loss");
    EXPECT_EQ(plot.curves[0].curve.y.back(), 0.5);
    EXPECT_EQ(plot.curves[1].curve.y, (std::vector<double>{5, 6}));
    EXPECT_NE(plot.note, "");
    EXPECT_EQ(plot_runs(compare_runs({test::run_with("b", {5, 6})}), "train/loss").note, "");
}

TEST(RunCurves, HolesAreSaid) {
    const double nan = std::nan("");
    const Comparison comparison = compare_runs(
        {test::run_with("a", {3, 2}), test::run_with("b", {3, nan, HUGE_VAL, 2}), test::run_with("c", {3, nan})});
    EXPECT_EQ(hole_notes(comparison, "train/loss"),
              (std::vector<std::string>{"B: 2 values are not finite, the first at step 2",
                                        "C: 1 value is not finite, at step 2"}));
    EXPECT_TRUE(hole_notes(comparison, "train/lr").empty());
}

}  // namespace
}  // namespace vpp
