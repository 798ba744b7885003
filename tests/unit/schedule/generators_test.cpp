#include "schedule/generators.hpp"

#include <algorithm>

#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

using testing::error_text;
using testing::prove;

TEST(MakeSchedule, NamesTrainAndEndWithAProof) {
    const std::vector<std::string> names = schedule_names();
    EXPECT_EQ(names.size(), schedule_kinds().size() - 1) << "all but FORWARD_ONLY";
    for (const ScheduleKind& kind : schedule_kinds()) {
        if (!kind.trains) continue;
        EXPECT_EQ(std::count(names.begin(), names.end(), kind.name), 1) << kind.name;
        const Schedule schedule = make_schedule(kind.name, 4, kind.fewest_per_rank, 8);
        EXPECT_FALSE(schedule.forward_only);
        EXPECT_EQ(schedule.num_ranks, 4);
        EXPECT_EQ(schedule.num_microbatches, 8);
        const int64_t whole = int64_t{2} * 4 * kind.fewest_per_rank * 8,
                      num_computing = prove(schedule).facts.num_computing;
        EXPECT_EQ(num_computing > whole, kind.splits_backward) << kind.name;
        EXPECT_TRUE(kind.splits_backward || num_computing == whole) << kind.name;
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
    EXPECT_CONTAINS(text, "GPIPE, 1F1B, SIMPLE_1F1B, EAGER_1F1B, INTERLEAVED_1F1B");
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

/// A shape for a row of the registry, its numbers random; most of them are odd ones.
ScheduleRequest random_request(const ScheduleKind& kind, uint64_t seed) {
    uint64_t key = mix64(seed);
    const auto draw = [&](int least, int most) {
        return least + static_cast<int>((key = mix64(key)) % static_cast<uint64_t>(most - least + 1));
    };
    const int P = draw(1, 8);
    const int v = draw(kind.fewest_per_rank, std::min(kind.most_per_rank, kind.fewest_per_rank + 3));
    ScheduleRequest request{.size = {P, v, draw(1, 4 * P)}};
    for (int stage = 0; stage < P * v; ++stage) {
        const Ticks input = draw(0, 9), weight = draw(0, 9);
        request.costs.stages.push_back({draw(0, 9), input + weight, input, weight});
    }
    request.costs.transfer = draw(0, 3);
    if (draw(0, 2) == 0) request.interleave_group = draw(P, std::max(P, request.size.num_microbatches));
    return request;
}

/// What a rank has to compute at least, and at most all actions one after the other.
void expect_plausible_times(const Simulation& simulation, const ScheduleRequest& request, int64_t num_messages) {
    Ticks total = num_messages * request.costs.transfer, busiest = 0;
    for (Ticks busy : simulation.busy) {
        total += busy;
        busiest = std::max(busiest, busy);
    }
    EXPECT_GE(simulation.span, busiest);
    EXPECT_GE(simulation.makespan, simulation.span);
    EXPECT_LE(simulation.makespan, total);
}

// Generated, lowered over random edges, proved and simulated at random costs. A shape that a schedule refuses is one
// that more microbatches mend.
void prove_random_shapes(uint64_t num_shapes) {
    for (const ScheduleKind& kind : schedule_kinds()) {
        if (*kind.same_as) continue;
        SCOPED_TRACE(kind.name);
        const bool tries_many_blocks = std::string(kind.name) == "V_ADAPTIVE";  // some 0.1 s each
        for (uint64_t seed = 0; seed < (tries_many_blocks ? num_shapes / 30 : num_shapes); ++seed) {
            ScheduleRequest request = random_request(kind, seed);
            Schedule schedule;
            try {
                schedule = make_schedule(kind.name, request);
            } catch (const Error& error) {
                ASSERT_EQ(error.kind(), ErrorKind::Plan) << error.what();
                request.size.num_microbatches += 2 * request.size.num_ranks;
                schedule = make_schedule(kind.name, request);
            }
            const auto edges = testing::random_edges(request.size.num_stages(), combine_key(seed, 1));
            SCOPED_TRACE(seed);
            testing::Proved proved;
            ASSERT_NO_THROW(proved = prove(schedule, edges, request.costs));
            expect_plausible_times(proved.simulation, request, proved.facts.num_messages);
        }
    }
}

TEST(MakeSchedule, RandomShapesAreProvedForEveryRow) {
    prove_random_shapes(90);
}

TEST(MakeScheduleFull, RandomShapesAreProvedForEveryRow) {
    prove_random_shapes(400);
}

}  // namespace
}  // namespace vpp
