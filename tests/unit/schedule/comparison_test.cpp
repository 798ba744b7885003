#include "schedule/comparison.hpp"

#include <algorithm>
#include <limits>

#include "schedule/generators.hpp"
#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

const ScheduleMetrics* find(const ScheduleComparison& comparison, const std::string& name) {
    const auto found = std::find_if(comparison.rows.begin(), comparison.rows.end(),
                                    [&](const ScheduleMetrics& row) { return row.schedule == name; });
    return found == comparison.rows.end() ? nullptr : &*found;
}

std::string reason(const ScheduleComparison& comparison, const std::string& name) {
    for (const ScheduleComparison::LeftOut& out : comparison.left_out) {
        if (out.name == name) return out.reason;
    }
    return "";
}

TEST(CompareSchedules, EveryTrainingScheduleIsARowOrLeftOutWithAReason) {
    const ScheduleComparison comparison = compare_schedules({.num_ranks = 4, .num_microbatches = 8});
    size_t expected = 0;
    for (const ScheduleKind& kind : schedule_kinds()) expected += kind.trains && !*kind.same_as;
    EXPECT_EQ(comparison.rows.size() + comparison.left_out.size(), expected);
    for (const ScheduleComparison::LeftOut& out : comparison.left_out) EXPECT_FALSE(out.reason.empty()) << out.name;
    ASSERT_TRUE(find(comparison, "1F1B"));
    EXPECT_EQ(find(comparison, "1F1B")->makespan, 33);
    ASSERT_TRUE(find(comparison, "INTERLEAVED_1F1B"));
    EXPECT_EQ(find(comparison, "INTERLEAVED_1F1B")->stages_per_rank, 2);
    EXPECT_FALSE(find(comparison, "SIMPLE_1F1B"));
    EXPECT_FALSE(find(comparison, "FORWARD_ONLY"));
}

TEST(CompareSchedules, TheMemoryLimitLeavesOut) {
    const ScheduleComparison comparison = compare_schedules({.num_ranks = 4, .num_microbatches = 8, .memory_limit = 4});
    EXPECT_TRUE(find(comparison, "1F1B"));
    EXPECT_FALSE(find(comparison, "GPIPE"));
    EXPECT_CONTAINS(reason(comparison, "GPIPE"), "it keeps 8.00 microbatches");
    for (const ScheduleMetrics& row : comparison.rows) EXPECT_LE(row.peak_activations(), 4) << row.schedule;
}

TEST(CompareSchedules, ALimitThatIsNoNumberFitsNothing) {
    const ScheduleComparison comparison = compare_schedules(
        {.num_ranks = 2, .num_microbatches = 4, .memory_limit = std::numeric_limits<double>::quiet_NaN()});
    EXPECT_TRUE(comparison.rows.empty());
    EXPECT_CONTAINS(reason(comparison, "GPIPE"), "it keeps 4.00 microbatches");
}

TEST(CompareSchedules, StagesPerRankAreTheNearestThatAScheduleTakes) {
    const ScheduleComparison comparison =
        compare_schedules({.num_ranks = 2, .num_microbatches = 8, .stages_per_rank = 3});
    EXPECT_EQ(find(comparison, "INTERLEAVED_1F1B")->stages_per_rank, 3);
    EXPECT_EQ(find(comparison, "1F1B")->stages_per_rank, 1);
}

TEST(CompareSchedules, CostsByStageFitTheirNumberOfStages) {
    const ScheduleComparison comparison =
        compare_schedules({.num_ranks = 4, .num_microbatches = 12, .costs = "F=1/1/1/3,I=1/1/1/3,W=1/1/1/3"});
    EXPECT_TRUE(find(comparison, "1F1B"));
    EXPECT_CONTAINS(reason(comparison, "INTERLEAVED_1F1B"), "has 4 values (expected one, or one for each of the 8");
}

TEST(CompareSchedules, CostsThatFitNoneAreRefused) {
    for (const char* costs : {"X=1", "F=1,I=4", "B=3,I=1,W=1", "F=1/2/3"}) {
        const std::string error = testing::error_text(ErrorKind::CommandLine, [&] {
            compare_schedules({.num_ranks = 4, .num_microbatches = 12, .costs = costs});
        });
        EXPECT_CONTAINS(error, "costs: '");
    }
}

TEST(CompareSchedules, ARefusalNamesTheStagesThatWereAskedFor) {
    const std::string error = testing::error_text(ErrorKind::CommandLine, [&] {
        compare_schedules({.num_ranks = 4, .num_microbatches = 12, .stages_per_rank = 3, .costs = "F=1/1"});
    });
    EXPECT_CONTAINS(error, "'F=1/1' has 2 values (expected one, or one for each of the 12 stages)");
}

TEST(CompareSchedules, TheHalvesOfABackwardFollowFromIt) {
    const auto makespans = [](const char* costs) {
        std::vector<double> found;
        const ScheduleComparison all = compare_schedules({.num_ranks = 4, .num_microbatches = 8, .costs = costs});
        for (const ScheduleMetrics& row : all.rows) found.push_back(row.makespan);
        return found;
    };
    EXPECT_EQ(makespans("F=10,B=20"), makespans("F=10,I=10,W=10"));
}

TEST(CompareSchedules, NoBubbleIsNegative) {
    const ScheduleComparison all =
        compare_schedules({.num_ranks = 4, .num_microbatches = 16, .costs = "F=1,B=2,overlap=100"});
    for (const ScheduleMetrics& row : all.rows) {
        EXPECT_GE(row.bubble_makespan, 0) << row.schedule;
        EXPECT_GE(row.bubble_span, 0) << row.schedule;
    }
    EXPECT_EQ(find(all, "DUALPIPE_V")->makespan, 38);
}

}  // namespace
}  // namespace vpp
