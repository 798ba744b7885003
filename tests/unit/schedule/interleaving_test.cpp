#include "schedule/interleaving.hpp"

#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

using testing::error_text;

std::string walk_of(const ScheduleRequest& request, ActionKind kind, int rank) {
    const InterleavedWalk walk(request, "X");
    std::vector<Action> list;
    for (int step = 0; step < walk.num_steps(); ++step) walk.append(kind, rank, step, list);
    return to_text(list);
}

TEST(InterleavedWalk, GroupsAreWalkedStageByStage) {
    EXPECT_EQ(walk_of({.size = {2, 2, 4}}, ActionKind::F, 1), "1F0 1F1 3F0 3F1 1F2 1F3 3F2 3F3");
    EXPECT_EQ(walk_of({.size = {2, 2, 4}}, ActionKind::I, 0), "2I0 2I1 0I0 0I1 2I2 2I3 0I2 0I3");
    EXPECT_EQ(walk_of({.size = {2, 2, 4}, .interleave_group = 4}, ActionKind::F, 1), "1F0 1F1 1F2 1F3 3F0 3F1 3F2 3F3");
}

TEST(InterleavedWalk, AShortLastGroupHasAtLeastPSteps) {
    // Groups of 3 and 2; rank 0 of 2.
    const ScheduleRequest short_group{.size = {2, 2, 5}, .interleave_group = 3};
    EXPECT_EQ(walk_of(short_group, ActionKind::F, 0), "0F0 0F1 0F2 2F0 2F1 2F2 0F3 0F4 2F3 2F4");
    EXPECT_EQ(InterleavedWalk(short_group, "X").num_steps(), 10);
    // Groups of 3 and 1, filled up to 2: two steps are left out.
    const ScheduleRequest filled{.size = {2, 2, 4}, .interleave_group = 3};
    EXPECT_EQ(walk_of(filled, ActionKind::F, 0), "0F0 0F1 0F2 2F0 2F1 2F2 0F3 2F3");
    EXPECT_EQ(InterleavedWalk(filled, "X").num_steps(), 10);
    // The only group is not filled up.
    EXPECT_EQ(InterleavedWalk({.size = {4, 3, 2}}, "X").num_steps(), 6);
}

TEST(InterleavedWalk, WarmUpIsTheHopsAndAllStagesButOne) {
    EXPECT_EQ(InterleavedWalk({.size = {4, 3, 8}}, "X").num_warmup(5), 13);
    EXPECT_EQ(InterleavedWalk({.size = {4, 3, 8}, .interleave_group = 6}, "X").num_warmup(5), 17);
    EXPECT_EQ(InterleavedWalk({.size = {4, 3, 2}}, "X").num_warmup(5), 6);  // 4 + 5, but there are 6
}

TEST(InterleavedWalk, GroupsThatCannotBeAreRefused) {
    const auto refusal = [](int M, int group) {
        return error_text(ErrorKind::Plan, [&] {
            InterleavedWalk({.size = {4, 2, M}, .interleave_group = group}, "X");
        });
    };
    EXPECT_EQ(refusal(8, 3),
              "X cannot walk in groups of that many microbatches (got interleave_group_size = 3 with num_stages = 4, "
              "num_microbatches = 8, expected 4 to 8); try interleave_group_size = 4");
    EXPECT_CONTAINS(refusal(8, 9), "expected 4 to 8); try interleave_group_size = 8");
    EXPECT_CONTAINS(refusal(8, -1), "try interleave_group_size = 4");
    EXPECT_CONTAINS(refusal(3, 2), "expected 3 to 4); try interleave_group_size = 3");
    for (int group : {4, 5, 8}) {
        EXPECT_NO_THROW(InterleavedWalk({.size = {4, 2, 8}, .interleave_group = group}, "X"));
    }
}

}  // namespace
}  // namespace vpp
