#include "schedule/v_rounds.hpp"

#include <algorithm>

#include "schedule/v_shape.hpp"
#include "unit/schedule/v_support.hpp"

namespace vpp {
namespace {

using testing::prove;
using testing::texts;

Schedule schedule_of_run(const ScheduleRequest& request, const VRun& run) {
    Schedule schedule = make_empty_v(request.size, "X");
    schedule.actions = run.actions;
    return schedule;
}

// Laid by hand, round by round; rank 0 works from 0 to 18, rank 1 from 1 to 19.
TEST(VRounds, TwoRanksThreeMicrobatches) {
    const ScheduleRequest request{.size = {2, 2, 3}};
    const VRun run = schedule_v_rounds(request, 4);
    ASSERT_TRUE(run.ended);
    EXPECT_EQ(texts(schedule_of_run(request, run)),
              (std::vector<std::string>{
                  "0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0I0 0W0 3F2 3I2 0I1 3W2 0I2 0W1 0W2",
                  "1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 1I1 2I2 1I2 2W1 1W1 2W2 1W2",
              }));
    EXPECT_EQ(run.makespan, 19);
    EXPECT_EQ(run.span, 18);
}

// At the memory of 1F1B: no bubble inside the span, the ramp of (P-1) T / 2 as makespan.
TEST(VRounds, EqualTimesLeaveTheRampOnly) {
    for (int P = 1; P <= 16; ++P) {
        for (int M : {2 * P, 2 * P + 1, 4 * P}) {
            const ScheduleRequest request{.size = {P, 2, M}};
            const VRun run = schedule_v_rounds(request, 2 * P);
            ASSERT_TRUE(run.ended) << P << ' ' << M;
            EXPECT_EQ(run.span, 6 * M) << P << ' ' << M;
            EXPECT_EQ(run.makespan, 6 * M + P - 1) << P << ' ' << M;
            for (int peak : prove(schedule_of_run(request, run)).facts.peak_in_flight) EXPECT_EQ(peak, 2 * P);
        }
    }
}

TEST(VRounds, TimesAreThoseOfTheSimulatorAndTheLimitHolds) {
    for (int shape = 0; shape < 300; ++shape) {
        testing::Draws draws(static_cast<uint64_t>(shape));
        const int P = 1 + draws.below(8);
        const ScheduleRequest request{.size = {P, 2, 1 + draws.below(4 * P)},
                                      .costs = testing::random_costs(2 * P, draws)};
        const int most = 2 + draws.below(3 * P);
        const VRun run = schedule_v_rounds(request, most);
        ASSERT_TRUE(run.ended) << shape;
        const auto proved = prove(schedule_of_run(request, run), request.costs);
        testing::expect_ascending(schedule_of_run(request, run));
        EXPECT_EQ(proved.simulation.makespan, run.makespan);
        EXPECT_EQ(proved.simulation.span, run.span);
        for (int peak : proved.facts.peak_in_flight) EXPECT_LE(peak, most);
    }
}

TEST(VRounds, NoRoomForAMicrobatchIsABug) {
    EXPECT_TRUE(schedule_v_rounds({.size = {4, 2, 8}}, 2).ended);
    testing::error_text(ErrorKind::Bug, [] { schedule_v_rounds({.size = {4, 2, 8}}, 1); });
    testing::error_text(ErrorKind::Bug, [] { schedule_v_rounds({.size = {4, 1, 8}}, 4); });
}

}  // namespace
}  // namespace vpp
