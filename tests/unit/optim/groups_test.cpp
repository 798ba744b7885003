#include "optim/groups.hpp"

#include <gtest/gtest.h>

#include "plan/optimizer_groups.hpp"

namespace vpp {
namespace {

OptimizerPlan plan_with_groups(const std::vector<std::vector<std::string>>& groups) {
    OptimizerPlan plan;
    for (const auto& match : groups) plan.groups.push_back({match, {}});
    return plan;
}

const std::vector<std::string> kNames = {"wte.weight", "h.0.ln_1.weight", "h.0.ln_1.bias", "h.0.fc.weight",
                                         "h.0.fc.bias"};

TEST(Groups, TheFirstThatMatchesTakesTheParameter) {
    const OptimizerPlan plan = plan_with_groups({{"*.bias", "wte.*"}, {"*ln*"}});
    const int expected[] = {0, 1, 0, 2, 0};
    for (size_t i = 0; i < kNames.size(); ++i) EXPECT_EQ(group_of(plan, kNames[i]), expected[i]) << kNames[i];
    EXPECT_EQ(match_counts(plan, kNames), (std::vector<int>{3, 1}));
}

TEST(Groups, OrderDecides) {
    EXPECT_EQ(match_counts(plan_with_groups({{"*ln*"}, {"*.bias", "wte.*"}}), kNames), (std::vector<int>{2, 2}));
}

TEST(Groups, WithoutGroupsAllIsDefault) {
    EXPECT_EQ(group_of({}, "a"), 0);
    EXPECT_TRUE(match_counts({}, kNames).empty());
    EXPECT_TRUE(check_groups({}, kNames).empty());
}

TEST(Groups, AGroupThatTakesNothingIsAProblemAtItsPlace) {
    Plan plan;
    plan.optimizer = plan_with_groups({{"*.bias"}, {"*.gamma", "l?"}, {"h.0.*.bias"}, {"*"}});
    plan.positions["optimizer.group[1].match"] = {"plan.toml", 12, 1, "match = [\"*.gamma\", \"l?\"]"};
    const std::vector<Problem> problems = check_groups(plan, kNames);
    ASSERT_EQ(problems.size(), 2u);
    EXPECT_EQ(problems[0].message,
              "optimizer.group[1].match: no parameter of the model matches '*.gamma', 'l?'; names look like "
              "'wte.weight'");
    ASSERT_TRUE(problems[0].position);
    EXPECT_EQ(problems[0].position->line, 12);
    EXPECT_EQ(problems[1].message,
              "optimizer.group[2].match: every parameter that 'h.0.*.bias' matches is taken by an earlier group "
              "('h.0.ln_1.bias' by group 0); put this group first");
}

TEST(Groups, AGroupOfFrozenParametersIsAProblem) {
    Plan plan;
    plan.optimizer = plan_with_groups({{"*.bias"}, {"head.*", "wte.*"}, {"nowhere.*"}});
    const std::vector<Problem> problems = check_groups(plan, {"h.0.fc.weight", "h.0.fc.bias"}, {"wte.weight"});
    ASSERT_EQ(problems.size(), 2u);
    EXPECT_EQ(problems[0].message,
              "optimizer.group[1].match: no parameter that 'head.*', 'wte.*' matches is trained ('wte.weight' is "
              "frozen); leave the group out, or look at model.freeze");
    EXPECT_EQ(problems[1].message,
              "optimizer.group[2].match: no parameter of the model matches 'nowhere.*'; names look like "
              "'h.0.fc.weight'");
}

TEST(Groups, AModelWithoutParametersIsSaid) {
    Plan plan;
    plan.optimizer = plan_with_groups({{"*"}});
    ASSERT_EQ(check_groups(plan, {}).size(), 1u);
}

}  // namespace
}  // namespace vpp
