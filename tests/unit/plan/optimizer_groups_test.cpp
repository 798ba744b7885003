#include "plan/optimizer_groups.hpp"

#include <gtest/gtest.h>

namespace vpp {
namespace {

TEST(OptimizerGroups, TheFirstThatMatchesTakesTheParameter) {
    OptimizerPlan plan;
    plan.values.lr = 1;
    plan.groups = {{{"*.bias", "wte.*"}, {}}, {{"*b*"}, {}}};
    plan.groups[0].values.lr = 2;
    plan.groups[1].values.lr = 3;
    EXPECT_EQ(group_of(plan, "h.bias"), 0);
    EXPECT_EQ(group_of(plan, "bn"), 1);
    EXPECT_EQ(group_of(plan, "h.weight"), 2);
    EXPECT_EQ(values_of(plan, "h.bias").lr, 2);
    EXPECT_EQ(values_of(plan, "bn").lr, 3);
    EXPECT_EQ(values_of(plan, "h.weight").lr, 1) << "the optimizer's own";
}

}  // namespace
}  // namespace vpp
