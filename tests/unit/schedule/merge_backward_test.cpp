#include "schedule/merge_backward.hpp"

#include "schedule/generators.hpp"
#include "schedule/search_seeds.hpp"
#include "unit/schedule/every_order.hpp"

namespace vpp {
namespace {

Ticks makespan_of(const Schedule& schedule, const ScheduleCosts& costs) {
    return testing::prove(schedule, costs).simulation.makespan;
}

// Rank 1's first I lets rank 0 go on, so its W stays behind; its second and all of rank 0 may be B.
TEST(MergeBackwards, KeepsTheSplitThatSomeoneWaitsFor) {
    using enum ActionKind;
    const Schedule schedule{"X",
                            2,
                            2,
                            {0, 1},
                            {{{F, 0, 0}, {F, 0, 1}, {I, 0, 0}, {W, 0, 0}, {I, 0, 1}, {W, 0, 1}},
                             {{F, 1, 0}, {I, 1, 0}, {W, 1, 0}, {F, 1, 1}, {I, 1, 1}, {W, 1, 1}}}};
    ScheduleCosts costs;
    costs.stages = {{1, 2, 1, 1}, {1, 3, 1, 2}};
    // rank 1: F0 1-2, I0 2-3, W0 3-5, F1 5-6, I1 6-7, W1 7-9; rank 0: I0 3-4, W0 4-5, I1 7-8, W1 8-9
    EXPECT_EQ(makespan_of(schedule, costs), 9);
    const Schedule merged = merge_backwards(schedule, costs, SearchObjective::Makespan);
    EXPECT_EQ(to_text(merged.actions[0]), "0F0 0F1 0B0 0B1");
    EXPECT_EQ(to_text(merged.actions[1]), "1F0 1B0 1F1 1I1 1W1");
    EXPECT_EQ(makespan_of(merged, costs), 9);
}

TEST(MergeBackwards, NeverCostsAnythingAndIsProved) {
    for (uint64_t seed = 0; seed < 30; ++seed) {
        const ScheduleCosts costs = testing::random_costs(4, seed);
        const Schedule split = make_schedule("ZERO_BUBBLE_GREEDY", {.size = {4, 1, 8}, .costs = costs});
        const Schedule merged = merge_backwards(split, costs, SearchObjective::Makespan);
        EXPECT_LE(makespan_of(merged, costs), makespan_of(split, costs)) << seed;
        EXPECT_LE(merged.actions[0].size(), split.actions[0].size());
    }
}

TEST(MergeBackwards, CheaperBackwardsAreAllTaken) {
    ScheduleCosts costs;
    costs.stages.assign(3, {1, 2, 2, 2});
    const Schedule fused = make_schedule("1F1B", 3, 1, 6);
    const Schedule merged = merge_backwards(split_all(fused), costs, SearchObjective::Makespan);
    EXPECT_EQ(merged.actions, fused.actions);
    // without anything to merge nothing changes
    EXPECT_EQ(merge_backwards(fused, costs, SearchObjective::Span).actions, fused.actions);
}

}  // namespace
}  // namespace vpp
