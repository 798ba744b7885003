#include "schedule/costs.hpp"

#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

std::string costs_refusal(const std::string& text, const ScheduleSize& size = {2, 1, 4}) {
    return testing::error_text(ErrorKind::CommandLine, [&] { parse_costs(text, size); });
}

TEST(ParseCosts, TimesOfAFullRankAreSharedByItsStages) {
    const ScheduleCosts costs = parse_costs("F=1.5,I=2,W=0.25,comm=0.1", {2, 3, 4});
    EXPECT_EQ(costs.ticks_per_unit, 300);
    ASSERT_EQ(costs.stages.size(), 6U);
    EXPECT_EQ(costs.stages[4].forward, 150);  // 1.5 / 3 units
    EXPECT_EQ(costs.stages[4].input_gradient, 200);
    EXPECT_EQ(costs.stages[4].weight_gradient, 25);
    EXPECT_EQ(costs.stages[4].backward, 225);
    EXPECT_EQ(costs.of_transfer(7), 30);
    EXPECT_EQ(costs.units(450), 1.5);
}

TEST(ParseCosts, StagesMayHaveTheirOwn) {
    const ScheduleCosts costs = parse_costs("F=1/1/1/3,B=7", {2, 2, 4});
    EXPECT_EQ(costs.stages[2].forward, 4);
    EXPECT_EQ(costs.stages[3].forward, 12);
    EXPECT_EQ(costs.stages[3].backward, 14);
    EXPECT_EQ(costs.stages[3].weight_gradient, 7);
    EXPECT_EQ(costs.units(costs.stages[3].forward), 3);
}

/// Rank 0 has stage 0, rank 1 the other two.
Schedule uneven_schedule() {
    return {"X", 2, 4, {0, 1, 1}, ActionLists(2)};
}

TEST(ParseCosts, EveryRankSharesByItsOwnStages) {
    const ScheduleCosts costs = parse_costs_for(uneven_schedule(), "F=1,B=3/3/5,comm=0.5");
    EXPECT_EQ(costs.units(costs.stages[0].forward), 1);
    EXPECT_EQ(costs.units(costs.stages[1].forward), 0.5);
    EXPECT_EQ(costs.units(costs.stages[0].backward), 3);
    EXPECT_EQ(costs.units(costs.stages[2].weight_gradient), 2.5);
    EXPECT_EQ(costs.units(costs.of_transfer(0)), 0.5);
    const ScheduleCosts usual = parse_costs_for(uneven_schedule(), "");
    EXPECT_EQ(usual.units(usual.stages[0].backward), 2);
    EXPECT_EQ(usual.units(usual.stages[2].backward), 1);
    Schedule even = uneven_schedule();
    even.rank_of_stage = {0, 1, 1, 0};
    EXPECT_EQ(parse_costs_for(even, "F=1.5,B=2").stages[3].forward,
              parse_costs("F=1.5,B=2", {2, 2, 4}).stages[3].forward);
}

TEST(ParseCosts, SharesWithoutACommonTickAreRefused) {
    Schedule schedule{"X", 40, 4, {}, ActionLists(40)};
    for (int rank = 0; rank < 40; ++rank) schedule.rank_of_stage.insert(schedule.rank_of_stage.end(), rank + 1, rank);
    const std::string error = testing::error_text(ErrorKind::CommandLine, [&] { parse_costs_for(schedule, ""); });
    EXPECT_EQ(error,
              "costs: the ranks hold too many different numbers of stages for times that are exact (got up to 40 "
              "stages on a rank); use fewer different numbers");
}

/// F, B, I and W of a stage in the unit of the text.
std::vector<double> times_of(const std::string& text, int stage = 0, const ScheduleSize& size = {2, 1, 4}) {
    const ScheduleCosts costs = parse_costs(text, size);
    std::vector<double> times;
    for (ActionKind kind : {ActionKind::F, ActionKind::B, ActionKind::I, ActionKind::W}) {
        times.push_back(costs.units(costs.of_stage(stage).of(kind)));
    }
    return times;
}

TEST(ParseCosts, TheBackwardIsTheSumOfItsHalves) {
    using Times = std::vector<double>;
    EXPECT_EQ(times_of("F=4,B=8"), (Times{4, 8, 4, 4}));
    EXPECT_EQ(times_of("F=4,B=8,I=4,W=4"), times_of("F=4,B=8"));
    EXPECT_EQ(times_of("B=3"), (Times{1, 3, 1.5, 1.5}));
    EXPECT_EQ(times_of("B=0.000001"), (Times{1, 0.000001, 0.0000005, 0.0000005}));
    EXPECT_EQ(times_of("F=3,B=5,overlap=33"), (Times{3, 5, 2.5, 2.5}));
    EXPECT_EQ(times_of("B=5,I=2"), (Times{1, 5, 2, 3}));
    EXPECT_EQ(times_of("B=5,W=2"), (Times{1, 5, 3, 2}));
    EXPECT_EQ(times_of("B=5,W=0"), (Times{1, 5, 5, 0}));
    EXPECT_EQ(times_of("I=2,W=0.5"), (Times{1, 2.5, 2, 0.5}));
    EXPECT_EQ(times_of("F=4"), (Times{4, 2, 1, 1}));
    EXPECT_EQ(times_of("B=4/7,I=2", 1), (Times{1, 7, 2, 5}));
    EXPECT_EQ(times_of("B=3", 5, {2, 3, 4}), (Times{1.0 / 3, 1, 0.5, 0.5}));
}

TEST(ParseCosts, ABackwardThatIsNoSumIsRefused) {
    EXPECT_EQ(costs_refusal("F=4,I=4"), "costs: 'I=4' needs B, or both I and W");
    EXPECT_EQ(costs_refusal("W=4/4"), "costs: 'W=4/4' needs B, or both I and W");
    EXPECT_EQ(costs_refusal("B=3,I=4"), "costs: 'B=3' is less than 'I=4', and B is I + W");
    EXPECT_EQ(costs_refusal("B=4/1,W=2"), "costs: 'B=4/1' is less than 'W=2', and B is I + W");
    EXPECT_EQ(costs_refusal("B=3,I=1,W=1"),
              "costs: 'B=3' is not I + W (expected B alone, I and W, or three that agree)");
    EXPECT_CONTAINS(costs_refusal("B=1,I=1,W=1"), "is not I + W");
}

TEST(ParseCosts, WhatTakesTooManyDigitsIsRefused) {
    const ScheduleSize large{64, 4, 1024};
    EXPECT_EQ(times_of("F=123456.123456", 0, large)[0] * 4, 123456.123456);
    EXPECT_EQ(costs_refusal("F=123456.123456,overlap=33", large),
              "costs: 'F=123456.123456,overlap=33' has too many digits for so many stages and microbatches; try fewer "
              "decimal places");
}

// comm is latency, transfer the time in which a message occupies its channel: together they are a hop.
TEST(ParseCosts, LatencyAndBandwidth) {
    const ScheduleCosts costs = parse_costs("comm=0.1,transfer=0.05", {2, 2, 4});
    EXPECT_EQ(costs.ticks_per_unit, 200);
    EXPECT_EQ(costs.of_transfer(1), 30);
    EXPECT_EQ(costs.of_occupied(1), 10);
    EXPECT_TRUE(costs.has_channels());
    EXPECT_FALSE(parse_costs("comm=0.1", {2, 2, 4}).has_channels());
    const ScheduleCosts by_edge = parse_costs("comm=1/2/3,transfer=1", {2, 2, 4});
    EXPECT_EQ(by_edge.of_transfer(0), 4);
    EXPECT_EQ(by_edge.of_transfer(2), 8);
    EXPECT_EQ(by_edge.of_occupied(2), 2);
    EXPECT_EQ(by_edge.transfer, 8);  // for those who do not know the edges: the largest
    const ScheduleCosts slow = parse_costs("transfer=1/0/5", {2, 2, 4});
    EXPECT_EQ(slow.of_occupied(1), 0);
    EXPECT_EQ(slow.of_transfer(2), 10);
}

TEST(ParseCosts, NothingGivenIsUnitCosts) {
    const ScheduleCosts costs = parse_costs("", {2, 1, 4});
    EXPECT_EQ(costs.stages[1].forward, 1);
    EXPECT_EQ(costs.stages[1].backward, 2);
    EXPECT_EQ(costs.of_transfer(0), 0);
}

TEST(ParseCosts, WhatIsWrongIsNamed) {
    EXPECT_EQ(costs_refusal("F"), "costs: 'F' has no '=' (expected parts such as F=1)");
    EXPECT_EQ(costs_refusal("G=1"), "costs: 'G=1' names no cost (expected F, B, I, W, comm, transfer or overlap)");
    EXPECT_EQ(costs_refusal("F=1,F=2"), "costs: 'F=2' is named twice");
    EXPECT_CONTAINS(costs_refusal("F=1/2/3"), "has 3 values (expected one, or one for each of the 2 stages)");
    EXPECT_CONTAINS(costs_refusal("comm=1/2"), "has 2 values (expected one)");
    EXPECT_CONTAINS(costs_refusal("transfer=1/2", {2, 2, 4}),
                    "has 2 values (expected one, or one for each of the 3 places between two stages)");
    EXPECT_CONTAINS(costs_refusal("overlap=1/2"), "has 2 values (expected one)");
    EXPECT_EQ(costs_refusal("overlap=101"),
              "costs: 'overlap=101' is no percentage (expected a whole number from 0 to 100)");
    EXPECT_CONTAINS(costs_refusal("overlap=100.5"), "costs: 'overlap=100.5' is no percentage");
    EXPECT_CONTAINS(costs_refusal("overlap=0.50"), "costs: 'overlap=0.50' is no percentage");
    for (const char* text : {"F=", "F=-1", "F=1e3", "F=nan", "F=.", "F=1.1234567", "F=1234567", "F=1/", "F= 1"}) {
        EXPECT_EQ(costs_refusal(text), "costs: '" + std::string(text) +
                                           "' is no cost (expected numbers from 0 with at most six digits on each "
                                           "side of the point)");
    }
}

TEST(ScheduleCosts, APairTakesLessTheMoreItOverlaps) {
    ScheduleCosts costs;
    const Action forward{ActionKind::F, 0, 3}, backward{ActionKind::B, 1, 0};
    EXPECT_EQ(costs.of_pair(forward, backward), 3);
    costs.stages.assign(2, {10, 20, 10, 10});
    costs.overlap_percent = 100;
    EXPECT_EQ(costs.of_pair(forward, backward), 20);
    costs.overlap_percent = 50;
    EXPECT_EQ(costs.of_pair(forward, backward), 25);
}

TEST(ParseCosts, EveryPercentageOfOverlapCounts) {
    for (int percent = 0; percent <= 100; ++percent) {
        const ScheduleCosts costs = parse_costs("F=1,B=2,overlap=" + std::to_string(percent), {4, 2, 16});
        const Action forward{ActionKind::F, 0, 3}, backward{ActionKind::B, 7, 0};
        EXPECT_DOUBLE_EQ(costs.units(costs.of_pair(forward, backward)), 1.5 - percent / 200.0);
    }
}

}  // namespace
}  // namespace vpp
