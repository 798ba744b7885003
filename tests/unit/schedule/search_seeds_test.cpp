#include "schedule/search_seeds.hpp"

#include <set>

#include "schedule/generators.hpp"
#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

std::set<std::string> origins(const std::vector<SearchSeed>& found) {
    std::set<std::string> names;
    for (const SearchSeed& seed : found) names.insert(seed.origin);
    return names;
}

TEST(SearchSeeds, HoldWhatTheRegistryMakesAndItsCost) {
    const std::vector<SearchSeed> found = find_seeds({.schedule = {.size = {4, 1, 8}}});
    const std::set<std::string> names = origins(found);
    EXPECT_TRUE(names.contains("GPIPE"));
    EXPECT_TRUE(names.contains("1F1B"));
    EXPECT_TRUE(names.contains("ZERO_BUBBLE_H1"));
    EXPECT_FALSE(names.contains("FORWARD_ONLY"));
    EXPECT_FALSE(names.contains("SIMPLE_1F1B"));
    EXPECT_FALSE(names.contains("INTERLEAVED_1F1B"));
    for (const SearchSeed& seed : found) {
        EXPECT_EQ(seed.cost, testing::prove(seed.schedule).simulation.makespan) << seed.origin;
        for (const SearchSeed& other : found) {
            EXPECT_TRUE(&other == &seed || other.schedule.actions != seed.schedule.actions);
        }
    }
}

TEST(SearchSeeds, GroupsOfSeveralSizes) {
    const std::set<std::string> names = origins(find_seeds({.schedule = {.size = {4, 2, 8}}}));
    EXPECT_TRUE(names.contains("INTERLEAVED_1F1B (v 2)"));
    const std::set<std::string> fixed = origins(find_seeds({.schedule = {.size = {4, 2, 8}, .interleave_group = 4}}));
    EXPECT_TRUE(fixed.contains("INTERLEAVED_1F1B (v 2, N 4)"));
}

TEST(SearchSeeds, WhatDoesNotFitIsLeftOut) {
    std::vector<SearchSeed> found = find_seeds({.schedule = {.size = {4, 1, 8}, .memory_limit = 4}});
    EXPECT_FALSE(origins(found).contains("GPIPE"));
    EXPECT_TRUE(origins(found).contains("1F1B"));
    for (const SearchSeed& seed : found) {
        for (int peak : peak_in_flight(seed.schedule)) EXPECT_LE(peak, 4) << seed.origin;
    }
}

TEST(SearchSeeds, PlainListsFitWhereNoGeneratorDoes) {
    const std::vector<SearchSeed> found = find_seeds({.schedule = {.size = {4, 3, 8}, .memory_limit = 1}});
    const std::set<std::string> names = origins(found);
    EXPECT_TRUE(names.contains("a plain list (v 3, loop)"));
    EXPECT_TRUE(names.contains("a plain list (v 3, v placement)"));
    for (const SearchSeed& seed : found) {
        if (seed.origin.starts_with("a plain list")) {
            EXPECT_FALSE(seed.generated);
        }
    }
    const std::string text = testing::error_text(ErrorKind::Plan, [] {
        find_seeds({.schedule = {.size = {4, 2, 8}, .memory_limit = 0.5}});
    });
    EXPECT_EQ(
        text,
        "every rank holds at least one microbatch (got memory_limit = 0.5, expected at least 1); try memory_limit = 1");
}

TEST(SearchSeeds, WithoutSplitNoInputGradients) {
    const std::vector<SearchSeed> found = find_seeds({.schedule = {.size = {4, 1, 8}}, .split_backward = false});
    EXPECT_TRUE(origins(found).contains("1F1B"));
    for (const SearchSeed& seed : found) {
        for (const std::vector<Action>& list : seed.schedule.actions) {
            for (const Action& action : list) EXPECT_NE(action.kind, ActionKind::I) << seed.origin;
        }
    }
}

TEST(SearchSeeds, MostHeldIsInStageActivations) {
    EXPECT_EQ(most_held({4, 2, 8}, std::nullopt), 16);
    EXPECT_EQ(most_held({4, 2, 8}, 3.5), 7);
    EXPECT_EQ(most_held({4, 3, 8}, 1.5), 4);
    EXPECT_EQ(most_held({4, 2, 8}, 1e300), 16);
    EXPECT_EQ(most_held({4, 2, 8}, -1), 0);
}

TEST(SplitAll, PutsInputAndWeightGradientInPlaceOfEachB) {
    using enum ActionKind;
    const Schedule schedule{"X", 1, 1, {0, 0}, {{{F, 0, 0}, {F, 1, 0, -1, -1, true}, {B, 1, 0}, {I, 0, 0}, {W, 0, 0}}}};
    EXPECT_EQ(to_text(split_all(schedule).actions[0]), "0F0 1F0 1I0 1W0 0I0 0W0");
}

}  // namespace
}  // namespace vpp
