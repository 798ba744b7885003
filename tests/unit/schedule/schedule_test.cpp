#include "schedule/schedule.hpp"

#include <gtest/gtest.h>

namespace vpp {
namespace {

TEST(Schedule, StagesOfARankAscend) {
    const Schedule loop{"X", 2, 1, {0, 1, 0, 1}, {{}, {}}};
    EXPECT_EQ(loop.num_stages(), 4);
    EXPECT_EQ(loop.stages_of(0), (std::vector<int>{0, 2}));
    EXPECT_EQ(loop.stages_of(1), (std::vector<int>{1, 3}));
    const Schedule v{"X", 2, 1, {0, 1, 1, 0}, {{}, {}}};
    EXPECT_EQ(v.stages_of(0), (std::vector<int>{0, 3}));
    EXPECT_TRUE(v.stages_of(2).empty());
}

TEST(Schedule, KnowsWhetherItDividesBackward) {
    using enum ActionKind;
    Schedule schedule{"X", 2, 1, {0, 1}, {{{F, 0, 0}, {B, 0, 0}}, {{F, 1, 0}, {B, 1, 0}}}};
    EXPECT_FALSE(schedule.divides_backward());
    schedule.actions[1] = {{F, 1, 0}, {I, 1, 0}, {W, 1, 0}};
    EXPECT_TRUE(schedule.divides_backward());
}

TEST(PeakInFlight, BackwardFreesAnActivation) {
    using enum ActionKind;
    const Schedule schedule{
        "X", 2, 3, {0, 1}, {{{F, 0, 0}, {F, 0, 1}, {B, 0, 0}, {F, 0, 2}, {B, 0, 1}, {B, 0, 2}}, {}}};
    EXPECT_EQ(peak_in_flight(schedule), (std::vector<int>{2, 0}));
}

TEST(PeakInFlight, InputGradientFreesNothing) {
    using enum ActionKind;
    const Schedule schedule{"X", 1, 2, {0}, {{{F, 0, 0}, {I, 0, 0}, {F, 0, 1}, {W, 0, 0}, {I, 0, 1}, {W, 0, 1}}}};
    EXPECT_EQ(peak_in_flight(schedule), (std::vector<int>{2}));
}

TEST(PeakInFlight, ForwardOnlyKeepsNothing) {
    using enum ActionKind;
    const Schedule schedule{"X", 2, 2, {0, 1}, {{{F, 0, 0}, {F, 0, 1}}, {{F, 1, 0}, {F, 1, 1}}}, true};
    EXPECT_EQ(peak_in_flight(schedule), (std::vector<int>{1, 1}));
}

}  // namespace
}  // namespace vpp
