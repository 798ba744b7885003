// Structure of the page; tests/report looks at it with parsers and a browser.
#include "report/report_page.hpp"

#include <gtest/gtest.h>

#include "unit/report/support.hpp"

namespace vpp {
namespace {

RecordedRun run_of(const std::string& name, const std::string& plan = "[train]\nsteps = 300\n") {
    RecordedRun run;
    run.name = name;
    run.plan_text = plan;
    run.settings = settings_from_plan(plan);
    for (int64_t step = 1; step <= 10; ++step) run.steps.push_back(test::sample_step(step));
    run.evaluations = {{10, 2.5, 512, 1}};
    run.memory = MemoryEvent{2, {{30 << 20, 1 << 20, 2 << 20, 2 << 20}}};
    return run;
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != text.npos;
}

TEST(ReportPage, OneRunHasCardsCurvesAStepAndItsPlan) {
    const std::string page = report_page({run_of("runs/gpt")});
    EXPECT_TRUE(page.starts_with("<!DOCTYPE html>\n"));
    EXPECT_TRUE(page.ends_with("</html>\n"));
    for (const char* part : {"<title>vpp report: runs/gpt</title>", "<b>10/300</b>", "<figcaption>Loss</figcaption>",
                             "<figcaption>Rate <small>tokens a second</small>", "<h2>A step</h2>", "<h2>Who waits</h2>",
                             "<h2>Memory of the ranks</h2>", "<pre>[train]\nsteps = 300\n</pre>"}) {
        EXPECT_TRUE(has(page, part)) << part;
    }
    EXPECT_FALSE(has(page, "Settings that differ"));
}

TEST(ReportPage, SeveralRunsAreCompared) {
    const std::string page = report_page({run_of("one"), run_of("two", "[train]\nsteps = 200\n")});
    EXPECT_TRUE(has(page, "<h1>2 runs side by side</h1>"));
    EXPECT_TRUE(has(page, "<code>train.steps</code></td><td><code>300</code></td><td><code>200</code>"));
    EXPECT_TRUE(has(page, "data-name=\"one\"") && has(page, "data-name=\"two\""));
    EXPECT_TRUE(has(report_page({run_of("one"), run_of("two")}), "The plans of these runs say the same."));
}

TEST(ReportPage, ARunWithoutStepsLeavesTheCurvesOfOthersAlone) {
    RecordedRun run = run_of("long"), begun = run_of("begun");
    for (int64_t step = 11; step <= 120; ++step) run.steps.push_back(test::sample_step(step));
    begun.steps.clear();
    const std::string page = report_page({run, begun});
    EXPECT_TRUE(has(page, "data-name=\"long, mean of 2\""));
    EXPECT_FALSE(has(page, "mean of 2, mean of 2"));
}

TEST(ReportPage, StagesHaveTheirTimesWhereTheyAreKnown) {
    RecordedRun run = run_of("one");
    EXPECT_FALSE(has(report_page({run}), "Time of the stages"));
    run.stages = {{0, 1.5, 4, 1, 2}, {1, 1, 2, 0.5, 1}};
    const std::string page = report_page({run});
    EXPECT_TRUE(has(page, "<tr><td>1</td><td>1</td><td>1.00 ms</td><td>2.00 ms</td><td>0.50 ms</td><td>1.00 ms</td>"));
    EXPECT_TRUE(has(page, "<tr><th>stage</th><th>PP rank</th>"));
    EXPECT_TRUE(has(page, "by the schedule alone"));
    for (StepEvent& step : run.steps) step.bubble_predicted = std::nullopt;
    EXPECT_FALSE(has(report_page({run}), "by the schedule alone"));
}

TEST(ReportPage, NotesAndUnreadablePlansAreShown) {
    RecordedRun run = run_of("one");
    run.plan_text = "[no toml";
    run.settings.clear();
    run.notes = {"something <odd>"};
    const std::string page = report_page({run});
    EXPECT_TRUE(has(page, "<p>something &lt;odd&gt;</p>"));
    EXPECT_TRUE(has(page, "<pre>[no toml</pre>"));
}

TEST(ReportPage, MetricsOfEvaluationsStandBesideTheLoss) {
    RecordedRun with = run_of("with");
    EXPECT_FALSE(has(report_page({with, run_of("without")}), "perplexity"));
    with.evaluations = {{3, 2, 1, 1, 0.25, 7.5}};
    EXPECT_TRUE(has(report_page({with}), "best validation accuracy, after step 3"));
    const std::string page = report_page({with, run_of("without")});
    EXPECT_TRUE(has(page, "25.00 %"));
    EXPECT_TRUE(has(page, "best validation perplexity"));
}

TEST(ReportPage, AFailureStandsAtTheTop) {
    RecordedRun run = run_of("one");
    run.end = RunEnd{79, "the loss <is> nan"};
    const std::string failure = "<p class=\"failure\">failed with 79: the loss &lt;is&gt; nan</p>";
    EXPECT_TRUE(has(report_page({run}), failure));
    run.end->exit_code = 85;
    EXPECT_FALSE(has(report_page({run}), "class=\"failure\""));
}

TEST(ReportPage, NamesOfRunsAreText) {
    const std::string page = report_page({run_of("<script>"), run_of("\"><img src=x>")});
    EXPECT_FALSE(has(page, "<img"));
    EXPECT_EQ(page.find("<script>"), page.rfind("<script>"));
}

TEST(ReportPage, SizesThatNobodyHasDoNoHarm) {
    RecordedRun run = run_of("one");
    const int64_t huge = 8'000'000'000'000'000'000;
    run.memory = MemoryEvent{2, {{huge, huge, 1, 1}}};
    EXPECT_TRUE(has(report_page({run}), "<i class=\"state\" style=\"width:50%\"></i>"));
    run.timeline = {{1'000'000, "F", 0, 0, 0, 1}};
    EXPECT_LT(report_page({run}).size(), 200'000u) << "ranks that did nothing have no rows";
}

TEST(ReportPage, TheSameRunsGiveTheSameBytes) {
    EXPECT_EQ(report_page({run_of("one")}), report_page({run_of("one")}));
}

}  // namespace
}  // namespace vpp
