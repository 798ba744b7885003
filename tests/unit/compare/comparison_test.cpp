#include "compare/comparison.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "unit/compare/runs.hpp"

namespace vpp {
namespace {

TEST(Comparison, SettingsThatDifferStandBesideResults) {
    const Comparison comparison = compare_runs(
        {test::run_with("a", test::falling(3, 10), "0.1"), test::run_with("b", test::falling(2, 10), "0.2")});
    ASSERT_EQ(comparison.runs.size(), 2u);
    EXPECT_EQ(comparison.runs[0].mark, "A");
    EXPECT_EQ(comparison.runs[1].mark, "B");
    EXPECT_EQ(comparison.runs[1].record.name, "b");
    EXPECT_EQ(comparison.runs[1].summary.last_loss, 0.2);
    ASSERT_EQ(comparison.differences.size(), 1u);  // the folder is none
    EXPECT_EQ(comparison.differences[0].key, "optimizer.lr");
    EXPECT_EQ(comparison.differences[0].values[1], "0.2");
}

TEST(Comparison, StatesSayHowFarARunCame) {
    RecordedRun unfinished = test::run_with("b", {3, 2});
    unfinished.steps.back().total_steps = 10;
    RecordedRun unsaved = test::run_with("e", {3, 2});
    unsaved.saves.clear();
    const Comparison comparison = compare_runs({test::run_with("a", {3, 2}), unfinished, test::run_with("c", {}),
                                                test::run_with("d", {3, std::nan("")}), unsaved});
    const char* const states[] = {"finished", "unfinished", "no step", "not finite", "unfinished"};
    for (size_t i = 0; i < std::size(states); ++i) EXPECT_EQ(comparison.runs[i].state, states[i]) << i;
}

TEST(Comparison, AnEndThatIsKnownIsTheState) {
    const auto state = [](RecordedRun run, int exit_code) {
        run.end = RunEnd{exit_code, "text"};
        return compare_runs({std::move(run)}).runs[0].state;
    };
    RecordedRun unfinished = test::run_with("b", {3, 2});
    unfinished.steps.back().total_steps = 10;
    EXPECT_EQ(state(test::run_with("a", {3, 2}), 0), "finished");
    EXPECT_EQ(state(test::run_with("a", {3, 2}), 74), "failed with 74");
    EXPECT_EQ(state(test::run_with("a", {}), 65), "failed with 65");
    EXPECT_EQ(state(unfinished, 85), "stopped");
    EXPECT_EQ(state(unfinished, 0), "unfinished") << "trained on since";
}

TEST(Comparison, MarksAreThoseOfASpreadsheet) {
    EXPECT_EQ(run_mark(0), "A");
    EXPECT_EQ(run_mark(25), "Z");
    EXPECT_EQ(run_mark(26), "AA");
    EXPECT_EQ(run_mark(27), "AB");
    EXPECT_EQ(run_mark(26 + 26 * 26), "AAA");
}

TEST(Comparison, OfNoRunsIsEmpty) {
    EXPECT_TRUE(compare_runs({}).runs.empty());
}

}  // namespace
}  // namespace vpp
