#include "schedule/generators.hpp"

#include <algorithm>

#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

using testing::error_text;
using testing::prove;

TEST(MakeSchedule, NamesTrainAndEndWithAProof) {
    const std::vector<std::string> names = schedule_names();
    EXPECT_EQ(names, (std::vector<std::string>{"GPIPE", "1F1B", "SIMPLE_1F1B", "INTERLEAVED_1F1B"}));
    for (const std::string& name : names) {
        const int stages_per_rank = name == "INTERLEAVED_1F1B" ? 2 : 1;
        const Schedule schedule = make_schedule(name, 4, stages_per_rank, 6);
        EXPECT_FALSE(schedule.forward_only);
        EXPECT_EQ(schedule.num_ranks, 4);
        EXPECT_EQ(schedule.num_microbatches, 6);
        EXPECT_EQ(prove(schedule).facts.num_computing, int64_t{2} * 4 * stages_per_rank * 6);
    }
}

TEST(MakeSchedule, OtherSpellingsGiveTheSameSchedule) {
    const Schedule one = make_schedule("1F1B", 4, 1, 8), other = make_schedule("SIMPLE_1F1B", 4, 1, 8);
    EXPECT_EQ(other.name, "1F1B");
    EXPECT_EQ(one.actions, other.actions);
}

TEST(MakeSchedule, EvaluationIsKnownButDoesNotTrain) {
    const std::vector<std::string> names = schedule_names();
    EXPECT_EQ(std::count(names.begin(), names.end(), "FORWARD_ONLY"), 0);
    EXPECT_TRUE(make_schedule("FORWARD_ONLY", 2, 3, 5).forward_only);
}

TEST(MakeSchedule, UnknownNamesAreAnswered) {
    const std::string text = error_text(ErrorKind::Plan, [] { make_schedule("1FB1", 2, 1, 4); });
    EXPECT_CONTAINS(text, "there is no schedule '1FB1'");
    EXPECT_CONTAINS(text, "GPIPE, 1F1B, SIMPLE_1F1B, INTERLEAVED_1F1B");
    EXPECT_CONTAINS(text, "did you mean '1F1B'?");
    EXPECT_CONTAINS(error_text(ErrorKind::Plan, [] { make_schedule("\x1b[2J", 2, 1, 4); }), "'?[2J'");
}

TEST(MakeSchedule, BadNumbersAreRefusedForEverySchedule) {
    for (const std::string& name : schedule_names()) {
        EXPECT_CONTAINS(error_text(ErrorKind::Plan, [&] { make_schedule(name, 0, 1, 4); }), "num_stages");
        EXPECT_CONTAINS(error_text(ErrorKind::Plan, [&] { make_schedule(name, 2, 0, 4); }), "virtual_chunks");
        EXPECT_CONTAINS(error_text(ErrorKind::Plan, [&] { make_schedule(name, 2, 2, -1); }), "num_microbatches");
        EXPECT_CONTAINS(error_text(ErrorKind::Plan, [&] { make_schedule(name, 2, 2, 2000000000); }), "too long");
    }
}

// Every generator over small sizes and models with skips, fan-out, gradient chains and values without gradient.
TEST(MakeSchedule, RandomSkipEdgesAreProvedForEverySchedule) {
    struct Case {
        const char* name;
        int fewest_per_rank, most_per_rank;
    };
    uint64_t seed = 0;
    for (const Case& one : {Case{"GPIPE", 1, 1}, {"1F1B", 1, 1}, {"INTERLEAVED_1F1B", 2, 4}, {"FORWARD_ONLY", 1, 4}}) {
        for (int P = 1; P <= 6; ++P) {
            for (int v = one.fewest_per_rank; v <= one.most_per_rank; ++v) {
                for (int M : {1, 2, 3, P + 1, 2 * P, 3 * P - 1}) {
                    const std::vector<ScheduleEdge> edges = testing::random_edges(P * v, ++seed);
                    SCOPED_TRACE(one.name + (" P " + std::to_string(P)) + " v " + std::to_string(v) + " M " +
                                 std::to_string(M));
                    ASSERT_NO_THROW(prove(make_schedule(one.name, P, v, M), edges));
                }
            }
        }
    }
}

}  // namespace
}  // namespace vpp
