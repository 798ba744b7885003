#include "optim/rules.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "optim/optimizer.hpp"
#include "plan/optimizer_rules.hpp"
#include "unit/optim/support.hpp"

namespace vpp {
namespace {

TEST(UpdateRules, AreFoundByKind) {
    EXPECT_EQ(optimizer_kinds(), (std::vector<std::string>{"adamw", "adam", "sgd"}));
    for (const std::string& kind : optimizer_kinds()) EXPECT_EQ(detail::find_update_rule(kind).kind, kind);
}

TEST(UpdateRules, TheRulesOfAPlanHaveARowForEachKind) {
    EXPECT_EQ(optimizer_kinds(), kinds_of_optimizer_rules()) << "a kind has a row in plan/optimizer_rules.cpp too";
}

TEST(UpdateRules, ThePlanKnowsHowManyTensorsAreKept) {
    OptimizerValues more;
    more.amsgrad = true;
    more.momentum = 0.9;
    for (const detail::UpdateRule& rule : detail::update_rules()) {
        for (const OptimizerValues& values : {OptimizerValues{}, more}) {
            const std::vector<detail::Slot> slots = rule.slots(values);
            const auto kept = std::ranges::count(slots, false, &detail::Slot::is_scalar);
            EXPECT_EQ(optimizer_kind(rule.kind).state_tensors(values), kept) << rule.kind;
        }
    }
}

TEST(UpdateRules, AnUnknownKindIsRefusedWithTheNearest) {
    std::string text;
    EXPECT_EQ(test::code_of([] { detail::find_update_rule("adamv"); }, &text), 78);
    EXPECT_TRUE(text.starts_with("optimizer.kind is unknown (got 'adamv', expected one of adamw, adam, sgd); "))
        << text;
    EXPECT_NE(text.find("did you mean 'adam"), std::string::npos) << text;
}

TEST(UpdateRules, SlotsFollowTheValues) {
    OptimizerValues values;
    EXPECT_EQ(detail::adam_slots(values).size(), 3u);
    EXPECT_TRUE(detail::sgd_slots(values).empty());
    values.amsgrad = true;
    values.momentum = 0.9;
    EXPECT_EQ(detail::adam_slots(values).size(), 4u);
    EXPECT_EQ(detail::sgd_slots(values).size(), 1u);
}

}  // namespace
}  // namespace vpp
