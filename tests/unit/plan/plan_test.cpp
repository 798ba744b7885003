#include "plan/plan.hpp"

#include <gtest/gtest.h>

namespace vpp {
namespace {

TEST(Plan, WhereFindsTheKeyOrTheNearestAbove) {
    Plan plan;
    plan.positions["pipeline.split_points"] = {"p.toml", 3, 1, ""};
    plan.positions["pipeline.split_points[1]"] = {"p.toml", 3, 9, ""};
    plan.positions["optimizer.group[0]"] = {"p.toml", 7, 1, ""};
    EXPECT_EQ(plan.where("pipeline.split_points[1]")->column, 9);
    EXPECT_EQ(plan.where("pipeline.split_points[2]")->column, 1);
    EXPECT_EQ(plan.where("optimizer.group[0].lr")->line, 7);
    EXPECT_FALSE(plan.where("optimizer.lr"));
    EXPECT_FALSE(plan.where(""));
}

}  // namespace
}  // namespace vpp
