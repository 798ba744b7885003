#include "plan/optimizer_rules.hpp"

#include <gtest/gtest.h>

#include "unit/plan/resolved_plans.hpp"

namespace vpp {
namespace {

using test::Arguments;
using test::error_at;
using test::error_of;
using test::holds;
using test::kShortPlan;
using test::problem;
using test::resolve;

TEST(OptimizerRules, OptimizerValuesFitTheKind) {
    EXPECT_NO_THROW(resolve({"optimizer.kind=sgd", "optimizer.momentum=0.9", "optimizer.nesterov=true"}, 1));
    EXPECT_TRUE(holds(problem({"optimizer.kind=sgd", "optimizer.nesterov=true"}), "nesterov needs momentum"));
    EXPECT_TRUE(holds(
        problem({"optimizer.kind=sgd", "optimizer.momentum=0.9", "optimizer.nesterov=true", "optimizer.dampening=0.5"}),
        "no dampening (got momentum 0.9 and dampening 0.5)"));
    EXPECT_TRUE(holds(problem({"optimizer.momentum=0.9"}), "optimizer.momentum has no meaning for adamw"));
    EXPECT_TRUE(holds(problem({"optimizer.kind=sgd", "optimizer.amsgrad=true"}), "no meaning for sgd"));
}

TEST(OptimizerRules, DampeningNeedsMomentum) {
    const std::string group = kShortPlan + "[[optimizer.group]]\nmatch = ['a']\n";
    const std::string kind = "optimizer.kind=sgd", dampening = "optimizer.dampening=0.5";
    EXPECT_TRUE(holds(problem({kind, dampening}),
                      "--set:1:21: optimizer.dampening needs momentum (got dampening 0.5 and momentum 0.0)"));
    EXPECT_NO_THROW(resolve({kind, dampening, "optimizer.momentum=0.9"}, 1));
    EXPECT_NO_THROW(resolve({kind, "optimizer.dampening=0"}, 1));
    EXPECT_NO_THROW(resolve({kind, dampening, "optimizer.momentum=0"}, 1)) << "as one of several of a sweep";
    EXPECT_EQ(error_at({dampening}, 1).problems().size(), 1U) << "it has no meaning for adamw, and that is all";
    EXPECT_TRUE(holds(problem({kind, dampening}, 1, group), "optimizer.dampening needs momentum"));
    EXPECT_NO_THROW(resolve({kind, dampening, "optimizer.group[0].momentum=0.9"}, 1, group)) << "it is the group's too";
    EXPECT_TRUE(holds(problem({kind, "optimizer.group[0].dampening=0.5"}, 1, group),
                      "optimizer.group[0].dampening needs momentum (got dampening 0.5 and momentum 0.0)"));
    EXPECT_NO_THROW(resolve({kind, dampening, "optimizer.momentum=0.9", "optimizer.group[0].momentum=0"}, 1, group))
        << "what a group inherits it did not ask for";
}

TEST(OptimizerRules, GroupsAreChecked) {
    const std::string group = kShortPlan + "[[optimizer.group]]\nmatch = ['a']\n";
    EXPECT_NO_THROW(resolve({}, 1, group));
    EXPECT_TRUE(holds(problem({"optimizer.group[0].match=[]"}, 1, group),
                      "optimizer.group[0].match is empty; name parameters, or \"*\" for all"));
    EXPECT_TRUE(holds(problem({"optimizer.group[0].momentum=0.5"}, 1, group), "optimizer.group[0].momentum has no"));
    // What a group inherits is said once.
    EXPECT_EQ(error_at({"optimizer.momentum=0.5", "optimizer.group[0].lr=1"}, 1, group).problems().size(), 1U);
    const Arguments sgd = {"optimizer.kind=sgd", "optimizer.momentum=0.9", "optimizer.nesterov=true",
                           "optimizer.group[0].momentum=0"};
    EXPECT_TRUE(holds(problem(sgd, 1, group), "optimizer.group[0].nesterov needs momentum"));
}

TEST(OptimizerRules, AKindWithoutARowIsABug) {
    EXPECT_EQ(error_of([] { optimizer_kind("adamv"); }).kind(), ErrorKind::Bug);
    EXPECT_EQ(optimizer_kind(OptimizerPlan{}.kind).kind, OptimizerPlan{}.kind);
}

}  // namespace
}  // namespace vpp
