#include "report/run_summary.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "unit/report/support.hpp"

namespace vpp {
namespace {

std::string figure_of(const RunSummary& summary, const std::string& name) {
    for (const SummaryFigure& figure : summary_figures(summary)) {
        if (figure.name == name) return figure.value;
    }
    return "no such figure";
}

TEST(RunSummary, MediansAreNotMovedByTheFirstStep) {
    RecordedRun run;
    for (int64_t step = 1; step <= 5; ++step) {
        run.steps.push_back(test::sample_step(step));
        run.steps.back().tokens_per_second = step == 1 ? 10 : 1000 + static_cast<double>(step);
        run.steps.back().flops = 1e6;
        run.steps.back().skipped = step == 3;
    }
    const RunSummary summary = summary_of(run);
    EXPECT_EQ(summary.rate, 1003);
    EXPECT_EQ(summary.last_step, 5);
    EXPECT_EQ(summary.num_skipped, 1);
    EXPECT_NEAR(summary.seconds, 5 * 0.0823, 1e-9);
    EXPECT_EQ(figure_of(summary, "steps"), "5/300");
    EXPECT_EQ(figure_of(summary, "median rate"), "1.0 K tokens/s");
    EXPECT_EQ(figure_of(summary, "useful work"), "12.2 MFLOP/s");
    EXPECT_EQ(figure_of(summary, "waiting, mean of ranks"), "21 %");
    EXPECT_EQ(figure_of(summary, "bubble"), "25 %");
    EXPECT_EQ(figure_of(summary, "bubble, simulated"), "20 %");
}

TEST(RunSummary, TheBestEvaluationIsTheSmallestFiniteOne) {
    RecordedRun run;
    run.evaluations = {
        {10, 3, 1, 1}, {20, 2, 1, 1}, {30, 2.5, 1, 1}, {40, std::numeric_limits<double>::quiet_NaN(), 1, 1}};
    const RunSummary summary = summary_of(run);
    EXPECT_EQ(summary.best_evaluation, 2);
    EXPECT_EQ(summary.best_evaluation_step, 20);
}

TEST(RunSummary, MetricsStandWhereAPlanAsksForThem) {
    RecordedRun with, without;
    with.evaluations = {{10, 3, 1, 1, 0.5, 20.0},
                        {20, 2, 1, 1, 0.9752, 7.5},
                        {30, 2, 1, 1, 0.9, HUGE_VAL},
                        {40, 2, 1, 1, std::nullopt, std::nullopt}};
    without.evaluations = {{10, 3, 1, 1}};
    const RunSummary summary = summary_of(with), plain = summary_of(without);
    EXPECT_EQ(figure_of(summary, "best validation accuracy"), "97.52 %");
    EXPECT_EQ(summary.best_accuracy_step, 20);
    EXPECT_EQ(figure_of(summary, "best validation perplexity"), "7.5000");
    EXPECT_EQ(summary.best_perplexity_step, 20);
    EXPECT_EQ(figure_of(plain, "best validation accuracy"), "");
    const auto both = figures_of_runs({plain, summary}), none = figures_of_runs({plain, plain});
    EXPECT_EQ(both[0].size(), none[0].size() + 2);
    EXPECT_EQ(both[1].size(), both[0].size());
    EXPECT_EQ(figure_of(plain, "best validation loss"), "3.0000");
    EXPECT_TRUE(figures_of_runs({}).empty());
}

TEST(RunSummary, TheBestLossIsTheSmallestFiniteOne) {
    RecordedRun run;
    for (const double loss : {3.0, 1.5, -HUGE_VAL, 2.0, std::numeric_limits<double>::quiet_NaN()}) {
        run.steps.push_back(test::sample_step(static_cast<int64_t>(run.steps.size()) + 1));
        run.steps.back().loss = loss;
    }
    const RunSummary summary = summary_of(run);
    EXPECT_EQ(summary.best_loss, 1.5);
    EXPECT_EQ(summary.best_loss_step, 2);
    EXPECT_EQ(figure_of(summary, "best loss"), "1.5000");
    EXPECT_EQ(figure_of(summary, "last loss"), "nan");
}

TEST(RunSummary, ARunIsFinishedWhenItsLastStepIsSaved) {
    RecordedRun run;
    run.steps.push_back(test::sample_step(300));
    EXPECT_FALSE(summary_of(run).is_finished);
    run.saves = {{200, "", 1, 1, 1}};
    EXPECT_FALSE(summary_of(run).is_finished);
    run.saves.push_back({300, "", 1, 1, 1});
    EXPECT_TRUE(summary_of(run).is_finished);
    run.steps.back().total_steps = 400;
    EXPECT_FALSE(summary_of(run).is_finished);
}

TEST(RunSummary, ARunIsFinishedWhenItSaysSo) {
    RecordedRun run;
    run.steps.push_back(test::sample_step(300));
    run.end = RunEnd{85, "stopped"};
    EXPECT_FALSE(summary_of(run).is_finished);
    run.end = RunEnd{0, "done"};
    EXPECT_TRUE(summary_of(run).is_finished) << "the line of its last save had no room";
    run.steps.back().step = 299;
    EXPECT_FALSE(summary_of(run).is_finished);
}

TEST(RunSummary, RanksThatWaitLongestAreCounted) {
    RecordedRun run;
    for (int64_t step = 0; step < 4; ++step) {
        run.steps.push_back(test::sample_step(step));
        run.steps.back().worst_rank = step == 0 ? 0 : 3;
        run.steps.back().bubble_worst = step == 0 ? 0.5 : 0.25;
    }
    run.steps.push_back(test::sample_step(5));
    run.steps.back().bubble_worst = std::nullopt;
    const RunSummary summary = summary_of(run);
    ASSERT_EQ(summary.worst_ranks.size(), 2u);
    EXPECT_EQ(summary.worst_ranks[0].rank, 3);
    EXPECT_EQ(summary.worst_ranks[0].share_of_steps, 0.75);
    EXPECT_EQ(summary.worst_ranks[0].mean_wait, 0.25);
}

TEST(RunSummary, ARunWithoutStepsHasNoFigures) {
    const RunSummary summary = summary_of({});
    EXPECT_EQ(figure_of(summary, "last loss"), "");
    EXPECT_EQ(figure_of(summary, "median rate"), "");
    EXPECT_EQ(figure_of(summary, "steps"), "0/0");
}

}  // namespace
}  // namespace vpp
