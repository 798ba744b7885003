#include "schedule/v_list_scheduler.hpp"

#include "schedule/v_half.hpp"
#include "schedule/v_shape.hpp"
#include "unit/schedule/v_support.hpp"

namespace vpp {
namespace {

using testing::prove;
using testing::texts;

Schedule as_schedule(const ScheduleRequest& request, const VRun& run) {
    Schedule schedule = make_empty_v(request.size, "X");
    schedule.actions = run.actions;
    return schedule;
}

// Fa, Fb, Ib, Ia of one rank wished for at 0, 1, 2, 3 and again every 6.
const VBlock kOneRank{{0, 1, 2, 3}, 6};

TEST(VListScheduler, MemoryDecidesHowFarForwardsRunAhead) {
    const ScheduleRequest request{.size = {1, 2, 3}};
    const VRules forwards{.first = VRules::First::Forward};
    // One place is kept for the leg up, so two Fa need room for three.
    EXPECT_EQ(to_text(schedule_v_list(request, 2, kOneRank, forwards).actions[0]),
              "0F0 1F0 1I0 0I0 1W0 0W0 0F1 1F1 1I1 0I1 1W1 0W1 0F2 1F2 1I2 0I2 1W2 0W2");
    EXPECT_EQ(to_text(schedule_v_list(request, 3, kOneRank, forwards).actions[0]),
              "0F0 1F0 0F1 1I0 0I0 1W0 1F1 1I1 0I1 0W0 0F2 1W1 1F2 1I2 0I2 0W1 1W2 0W2");
}

TEST(VListScheduler, RulesSayWhatGoesFirst) {
    const ScheduleRequest request{.size = {1, 2, 2}};
    EXPECT_EQ(to_text(schedule_v_list(request, 8, kOneRank, {}).actions[0]),
              "0F0 1F0 1I0 0I0 0F1 1F1 1I1 0I1 1W0 0W0 1W1 0W1");
    EXPECT_EQ(to_text(schedule_v_list(request, 8, kOneRank, {.first = VRules::First::Forward}).actions[0]),
              "0F0 1F0 0F1 1F1 1I0 0I0 1I1 0I1 1W0 0W0 1W1 0W1");
    EXPECT_EQ(to_text(schedule_v_list(request, 8, kOneRank, {.first = VRules::First::Alternate}).actions[0]),
              "0F0 1F0 1I0 0F1 0I0 1F1 1I1 0I1 1W0 0W0 1W1 0W1");
}

TEST(VListScheduler, TimesAreThoseOfTheSimulator) {
    for (int shape = 0; shape < 100; ++shape) {
        testing::Draws draws(static_cast<uint64_t>(shape));
        const int P = 1 + draws.below(6);
        const ScheduleRequest request{.size = {P, 2, 1 + draws.below(12)},
                                      .costs = testing::random_costs(2 * P, draws)};
        const int most = 2 + draws.below(2 * P);
        const VRun run = schedule_v_list(request, most, v_half_block(P), {});
        ASSERT_TRUE(run.ended);
        const auto proved = prove(as_schedule(request, run), request.costs);
        EXPECT_EQ(proved.simulation.makespan, run.makespan);
        EXPECT_EQ(proved.simulation.span, run.span);
        for (int peak : proved.facts.peak_in_flight) EXPECT_LE(peak, most);
    }
}

TEST(VListScheduler, WeightsFillWaitsOrWait) {
    // While one rank is at an I of 4 the other knows what comes, and its W takes 5.
    ScheduleCosts costs;
    costs.stages.assign(4, {4, 9, 4, 5});
    const ScheduleRequest request{.size = {2, 2, 4}, .costs = costs};
    const VRun filling = schedule_v_list(request, 4, v_half_block(2), {});
    const VRun waiting = schedule_v_list(request, 4, v_half_block(2), {.weights_wait = true});
    EXPECT_TRUE(filling.weights_delay);
    EXPECT_TRUE(filling.actions != waiting.actions);
    const VRun best = schedule_v_best(request, 4, v_half_block(2), {{}});
    EXPECT_EQ(best.makespan, std::min(filling.makespan, waiting.makespan));
    // At unit costs no wait is too short, so there is nothing to choose.
    EXPECT_FALSE(schedule_v_list({.size = {2, 2, 4}}, 4, v_half_block(2), {}).weights_delay);
}

TEST(VListScheduler, AnOrderThatDoesNotFitIsSaid) {
    const VRun run = schedule_v_list({.size = {4, 2, 8}}, 3, v_half_block(4), {.all_in_order = true});
    EXPECT_FALSE(run.ended);
    EXPECT_TRUE(schedule_v_list({.size = {4, 2, 8}}, 3, v_half_block(4), {}).ended);
    EXPECT_FALSE(schedule_v_best({.size = {4, 2, 8}}, 3, v_half_block(4), {{.all_in_order = true}}).ended);
}

TEST(VListScheduler, PeaksOfBlocks) {
    EXPECT_EQ(block_peak(v_min_block(4), 4), 5);  // 0..15 and 7..8 with their W: 17 and 3 slots, by 6
    EXPECT_EQ(block_peak(v_half_block(4), 4), 6);
    EXPECT_EQ(block_peak(kOneRank, 1), 2);
}

TEST(VListScheduler, BadCallsAreBugs) {
    testing::error_text(ErrorKind::Bug, [] { schedule_v_list({.size = {1, 2, 2}}, 1, kOneRank, {}); });
    testing::error_text(ErrorKind::Bug, [] { schedule_v_list({.size = {2, 2, 2}}, 2, kOneRank, {}); });
    testing::error_text(ErrorKind::Bug, [] { schedule_v_list({.size = {1, 1, 2}}, 2, kOneRank, {}); });
}

}  // namespace
}  // namespace vpp
