#include "schedule/placement.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace vpp {
namespace {

TEST(Placement, LoopStartsAgainAtRankZero) {
    EXPECT_EQ(place_stages(Placement::Loop, {3, 2, 1}), (std::vector<int>{0, 1, 2, 0, 1, 2}));
    EXPECT_EQ(place_stages(Placement::Loop, {4, 1, 1}), (std::vector<int>{0, 1, 2, 3}));
}

TEST(Placement, VTurnsBackAtTheEnds) {
    EXPECT_EQ(place_stages(Placement::V, {3, 2, 1}), (std::vector<int>{0, 1, 2, 2, 1, 0}));
    EXPECT_EQ(place_stages(Placement::V, {2, 3, 1}), (std::vector<int>{0, 1, 1, 0, 0, 1}));
}

TEST(Placement, EveryRankHoldsAsManyStages) {
    for (Placement placement : {Placement::Loop, Placement::V}) {
        for (int ranks = 1; ranks <= 6; ++ranks) {
            for (int per_rank = 1; per_rank <= 4; ++per_rank) {
                const std::vector<int> places = place_stages(placement, {ranks, per_rank, 1});
                ASSERT_EQ(places.size(), static_cast<size_t>(ranks * per_rank));
                for (int rank = 0; rank < ranks; ++rank) {
                    EXPECT_EQ(std::count(places.begin(), places.end(), rank), per_rank);
                }
            }
        }
    }
}

}  // namespace
}  // namespace vpp
