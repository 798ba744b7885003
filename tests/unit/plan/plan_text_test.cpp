#include "plan/plan_text.hpp"

#include <gtest/gtest.h>

#include "plan/reader.hpp"
#include "plan/rules.hpp"
#include "unit/plan/plan_texts.hpp"

namespace vpp {
namespace {

using test::built_names;
using test::holds;

Plan parse_named(const std::string& text, const std::string& file = "configs/p.toml") {
    return parse_plan(text, file, {}, built_names());
}

TEST(PlanText, ReadAgainIsTheSamePlan) {
    const std::vector<std::string> plans = {
        test::kShortPlan, test::kLongPlan,
        "model.file = 'm'\n[loss]\nkind = 'mse'\ntarget = 'y'\n[data]\nkind = 'arrays'\n[data.train]\nz = 'z.npy'\n"
        "'a b' = '/abs/a.npy'\n[data.val]\nz = 'v.npy'\n'a b' = 'w.npy'\n[optimizer]\nkind = 'sgd'\nmomentum = 0.9\n",
        "model.file = 'm'\n[[model.init]]\nmatch = ['a']\nkind = 'normal'\nstd = 0.1\n[[model.init]]\nmatch = ['b']\n"
        "kind = 'uniform'\nlow = -0.5\n[[model.init]]\nmatch = ['*']\nkind = 'zeros'\n[data]\nkind = 'tokens'\n"
        "train = ['t.bin']\nsequence_length = 8\n",
        "model.file = 'm'\n[data]\nkind = 'synthetic'\nsamples = 7\n[data.fields]\ny = 'int64[] < 10'\nx = "
        "'float32[3]'\n"};
    for (const std::string& text : plans) {
        const Plan plan = parse_named(text);
        const Plan again = parse_named(plan.resolved_text);
        EXPECT_EQ(again.resolved_text, plan.resolved_text);
        EXPECT_EQ(again.model.file, plan.model.file);
        EXPECT_EQ(again.data.train, plan.data.train);
        EXPECT_EQ(again.data.train_fields, plan.data.train_fields);
        EXPECT_EQ(again.data.fields, plan.data.fields);
        EXPECT_EQ(again.optimizer.groups.size(), plan.optimizer.groups.size());
        check_plan(again);
        const int world = natural_world(plan);
        const Plan resolved = resolve_plan(plan, world);
        EXPECT_EQ(resolve_plan(parse_named(resolved.resolved_text), world).resolved_text, resolved.resolved_text);
    }
}

TEST(PlanText, DoesNotDependOnWhereThePlanLies) {
    const std::string text = parse_named(test::kLongPlan, "/one/place/p.toml").resolved_text;
    EXPECT_EQ(parse_named(test::kLongPlan, "other/p.toml").resolved_text, text);
    EXPECT_EQ(parse_named(test::kLongPlan, "p.toml").resolved_text, text);
    EXPECT_TRUE(holds(text, "file = \"../models/out/gpt.pt\"\n"));
    EXPECT_TRUE(holds(text, "train = [\"a.bin\", \"/data/b.bin\"]\n"));
}

TEST(PlanText, EveryValueChangesIt) {
    const std::string text = parse_named(test::kLongPlan).resolved_text;
    for (const char* change : {"optimizer.lr=4e-4", "optimizer.group[1].lr=2e-5", "train.seed=5", "data.shuffle=false",
                               "pipeline.split_points[1]=b9", "model.file=other.pt", "optimizer.betas=[0.9, 0.96]"}) {
        EXPECT_NE(parse_plan(test::kLongPlan, "p.toml", {change}, built_names()).resolved_text, text) << change;
    }
}

TEST(PlanText, FormAndOrderOfThePlanDoNotChangeIt) {
    const std::string turned =
        "data = { sequence_length = 128, train = ['train.bin'], kind = 'tokens' }\nmodel.file = \"model.pt\"\n";
    EXPECT_EQ(parse_named(turned).resolved_text, parse_named(test::kShortPlan).resolved_text);
    EXPECT_EQ(parse_named(test::kShortPlan + "[optimizer]\nlr = 1e-3\n").resolved_text,
              parse_named(test::kShortPlan).resolved_text);
}

TEST(PlanText, LeavesOutWhatHasNoValue) {
    const std::string text = parse_named(test::kShortPlan).resolved_text;
    EXPECT_FALSE(holds(text, "[loss]"));
    EXPECT_FALSE(holds(text, "num_microbatches"));
    EXPECT_TRUE(holds(text, "[report]\nevery = 10\n"));
}

}  // namespace
}  // namespace vpp
