#include "engine/memory_remarks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vpp::test {
namespace {

using testing::HasSubstr;

StepTotals full(int64_t flushes) {
    StepTotals totals;
    totals.memory_flushes = flushes;
    totals.nearly_full = true;
    return totals;
}

StepTotals taking() {
    StepTotals totals;
    totals.takes_memory = true;
    return totals;
}

/// What `num_steps` like this one say, together.
std::string look_often(MemoryRemarks& remarks, const StepTotals& totals, int num_steps, bool may_hold_device = true) {
    std::string said;
    for (int i = 0; i < num_steps; ++i) said += remarks.look(totals, may_hold_device);
    return said;
}

const std::string kKeepsTaking =
    "each of the last 16 steps took new memory of cards, so stages send through the host, which is slower; where "
    "shapes "
    "keep changing, pad samples to one shape";

TEST(MemoryRemarks, fullCardsAreSaidOnceUntilThereIsRoom) {
    const std::string nearly =
        "cards are nearly full; stages send through the host until there is room; use more stages or smaller "
        "microbatches (a larger pipeline.num_microbatches)";
    MemoryRemarks remarks;
    EXPECT_EQ(look_often(remarks, full(0), 3), nearly);
    EXPECT_EQ(look_often(remarks, {}, 3), "");
    EXPECT_EQ(look_often(remarks, full(0), 3), nearly);
    EXPECT_EQ(look_often(remarks, full(0), 3, false), "") << "nothing goes otherwise for it";
}

TEST(MemoryRemarks, eachFlushIsSaid) {
    MemoryRemarks remarks;
    const std::string of_flushes = ", and what was kept for later went back to them, which waits for all that they do";
    EXPECT_THAT(remarks.look(full(2), true), HasSubstr("cards were full 2 times" + of_flushes + "; stages send"));
    EXPECT_THAT(remarks.look(full(1), true), HasSubstr("cards were full 1 time" + of_flushes + "; stages send"));
    EXPECT_THAT(remarks.look(full(1), false), HasSubstr("cards were full 1 time" + of_flushes + "; use more stages"));
}

TEST(MemoryRemarks, stepsThatKeepTakingMemoryAreSaidOnce) {
    MemoryRemarks remarks;
    EXPECT_EQ(look_often(remarks, taking(), MemoryRemarks::kManySteps - 1), "");
    EXPECT_EQ(look_often(remarks, taking(), 1), kKeepsTaking);
    EXPECT_EQ(look_often(remarks, taking(), 50), "");
    EXPECT_EQ(look_often(remarks, {}, 1) + look_often(remarks, taking(), 50), "") << "not again";
}

TEST(MemoryRemarks, stepsThatSometimesTakeMemoryAreNotSaid) {
    MemoryRemarks remarks;
    for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(look_often(remarks, taking(), MemoryRemarks::kManySteps - 1) + look_often(remarks, {}, 1), "");
    }
    EXPECT_EQ(look_often(remarks, taking(), 50, false), "") << "nothing goes otherwise for it";
    EXPECT_EQ(look_often(remarks, taking(), MemoryRemarks::kManySteps), kKeepsTaking);
}

TEST(MemoryRemarks, stepsOnFullCardsGoThroughTheHostForThat) {
    StepTotals both = full(0);
    both.takes_memory = true;
    MemoryRemarks remarks;
    EXPECT_THAT(look_often(remarks, both, 50), testing::Not(HasSubstr("each of the last")));
}

}  // namespace
}  // namespace vpp::test
