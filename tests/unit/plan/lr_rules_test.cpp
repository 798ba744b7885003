#include "plan/lr_rules.hpp"

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

TEST(LrRules, NoRateRisesToTheOneThatDecayEndsAt) {
    const std::string group = kShortPlan + "[[optimizer.group]]\nmatch = ['a']\n";
    const std::string kind = "lr_schedule.kind=cosine", min = "lr_schedule.min_lr=1e-4";
    EXPECT_TRUE(holds(problem({kind, "lr_schedule.min_lr=1"}), "above optimizer.lr (got 1.0 and 0.001)"));
    EXPECT_TRUE(holds(problem({kind, min, "optimizer.group[0].lr=1e-5"}, 1, group),
                      "--set:1:23: optimizer.group[0].lr is below lr_schedule.min_lr (got 1e-05 and 1e-04), so decay "
                      "would raise it; lower min_lr, or set a higher lr"));
    EXPECT_NO_THROW(resolve({kind, min, "optimizer.group[0].lr=1e-4"}, 1, group));
    EXPECT_NO_THROW(resolve({kind, min, "optimizer.group[0].lr=0"}, 1, group)) << "it stays 0";
    EXPECT_NO_THROW(resolve({kind, min, "optimizer.lr=0", "optimizer.group[0].lr=1"}, 1, group));
    EXPECT_EQ(error_at({kind, min, "optimizer.lr=1e-5"}, 1, group).problems().size(), 1U) << "not of the group too";
    EXPECT_TRUE(holds(problem({kind, min, "optimizer.lr=0"}), "above optimizer.lr (got 1e-04 and 0.0)"));
}

TEST(LrRules, KeysOfALrScheduleNeedItsKind) {
    EXPECT_TRUE(
        holds(problem({"lr_schedule.gamma=0.5"}),
              "--set:1:19: lr_schedule.gamma is for step, and lr_schedule.kind is not set, so it is \"constant\"; "
              "set it, or leave this out"));
    EXPECT_TRUE(holds(problem({"lr_schedule.decay_steps=5"}), "is for linear, cosine, wsd and step, and lr_sch"));
    EXPECT_TRUE(holds(problem({"lr_schedule.min_lr=1e-5"}), "lr_schedule.min_lr is for kinds that decay, and lr_sch"));
    EXPECT_EQ(error_at({"lr_schedule.min_lr=1"}, 1).problems().size(), 1U);
    for (const char* kind : {"constant", "linear", "cosine", "wsd", "step", "inverse_sqrt"}) {
        const std::string named = std::string("lr_schedule.kind=") + kind;
        for (const char* setting : {"lr_schedule.gamma=0.5", "lr_schedule.decay_steps=5", "lr_schedule.min_lr=1e-5"}) {
            const Arguments set = {named, "lr_schedule.decay_steps=5", setting};
            EXPECT_NO_THROW(resolve(set, 1)) << named << ", as one of several of a sweep: " << setting;
        }
    }
}

TEST(LrRules, RestartsNeedADecay) {
    for (const std::string kind : {"linear", "cosine", "step"}) {
        EXPECT_NO_THROW(
            resolve({"lr_schedule.kind=" + kind, "lr_schedule.restart_every=10", "lr_schedule.decay_steps=5"}, 1))
            << kind;
    }
    for (const std::string kind : {"constant", "inverse_sqrt", "wsd"}) {
        EXPECT_TRUE(holds(problem({"lr_schedule.kind=" + kind, "lr_schedule.restart_every=10"}),
                          "lr_schedule.restart_every begins a decay anew, and this kind has none that could (got kind "
                          "\"" +
                              kind + "\", expected linear, cosine or step); leave it out"))
            << kind;
    }
}

TEST(LrRules, AKindWithoutARowIsABug) {
    EXPECT_EQ(error_of([] { lr_kind("sine"); }).kind(), ErrorKind::Bug);
    EXPECT_EQ(lr_kind(LrSchedulePlan{}.kind).kind, LrSchedulePlan{}.kind);
}

}  // namespace
}  // namespace vpp
