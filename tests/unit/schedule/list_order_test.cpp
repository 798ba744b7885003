#include "schedule/list_order.hpp"

#include "unit/schedule/every_order.hpp"

namespace vpp {
namespace {

using testing::texts;

// Two ranks, unit costs, one microbatch at a time: each waits for the one before it.
TEST(ListOrder, OneAtATimeByHand) {
    const Schedule schedule = make_list_order({.size = {2, 1, 2}, .memory_limit = 1}, Placement::Loop, true);
    EXPECT_EQ(texts(schedule), (std::vector<std::string>{"0F0 0I0 0W0 0F1 0I1 0W1", "1F0 1I0 1W0 1F1 1I1 1W1"}));
    EXPECT_EQ(testing::prove(schedule).simulation.makespan, 2 * (1 + 1 + 1 + 1 + 1));
}

// v placement on one rank of each kind of tie: the backward of stage 1 comes before the F of the next microbatch.
TEST(ListOrder, BackwardBeforeForwardBeforeWeights) {
    const Schedule schedule = make_list_order({.size = {1, 2, 2}}, Placement::V, true);
    EXPECT_EQ(texts(schedule), (std::vector<std::string>{"0F0 1F0 1I0 0I0 0F1 1F1 1I1 0I1 1W0 0W0 1W1 0W1"}));
}

TEST(ListOrder, AnyPlacementCostsAndLimitGiveAProvedSchedule) {
    uint64_t key = 4;
    const auto draw = [&](int bound) { return static_cast<int>((key = mix64(key)) % static_cast<uint64_t>(bound)); };
    for (int round = 0; round < 200; ++round) {
        const ScheduleSize size{1 + draw(5), 1 + draw(4), 1 + draw(12)};
        const int limit = 1 + draw(6);
        const bool split = draw(2) == 0;
        const ScheduleCosts costs = testing::random_costs(size.num_stages(), static_cast<uint64_t>(round));
        const Placement placement = draw(2) == 0 ? Placement::Loop : Placement::V;
        const Schedule schedule =
            make_list_order({.size = size, .costs = costs, .memory_limit = limit + 0.5}, placement, split);
        EXPECT_EQ(schedule.rank_of_stage, place_stages(placement, size));
        const auto proved = testing::prove(schedule, costs);
        EXPECT_EQ(proved.facts.num_computing, (split ? 3 : 2) * size.num_stages() * size.num_microbatches);
        for (int peak : proved.facts.peak_in_flight) EXPECT_LE(peak, limit * size.stages_per_rank);
    }
}

TEST(ListOrder, LessThanOneMicrobatchIsABug) {
    EXPECT_CONTAINS(
        testing::error_text(ErrorKind::Bug,
                            [] {
                                make_list_order({.size = {2, 1, 2}, .memory_limit = 0.9}, Placement::Loop, true);
                            }),
        "at least one microbatch");
}

}  // namespace
}  // namespace vpp
