#include "schedule/forward_only.hpp"

#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

using testing::prove;
using testing::texts;

TEST(ForwardOnly, OneStageOnEachRank) {
    const Schedule schedule = make_forward_only({2, 1, 3});
    EXPECT_TRUE(schedule.forward_only);
    EXPECT_EQ(texts(schedule), (std::vector<std::string>{"0F0 0F1 0F2", "1F0 1F1 1F2"}));
}

TEST(ForwardOnly, GroupsOfMicrobatchesOverLocalStages) {
    EXPECT_EQ(texts(make_forward_only({2, 2, 3})),
              (std::vector<std::string>{"0F0 0F1 2F0 2F1 0F2 2F2", "1F0 1F1 3F0 3F1 1F2 3F2"}));
}

TEST(ForwardOnly, BubbleIsTheClosedFormAndNothingIsKept) {
    for (int P = 1; P <= 8; ++P) {
        for (int v = 1; v <= 4; ++v) {
            for (int M : {P, 2 * P, 4 * P}) {
                const auto proved = prove(make_forward_only({P, v, M}));
                EXPECT_EQ(proved.simulation.makespan, M * v + P - 1) << P << ' ' << v << ' ' << M;
                EXPECT_EQ(proved.facts.peak_in_flight, std::vector<int>(static_cast<size_t>(P), 1));
            }
        }
    }
}

TEST(ForwardOnly, AnyNumberOfMicrobatchesEnds) {
    for (int P = 1; P <= 8; ++P) {
        for (int v = 1; v <= 4; ++v) {
            for (int M = 1; M <= 20; ++M) {
                const auto proved = prove(make_forward_only({P, v, M}));
                EXPECT_EQ(proved.facts.num_messages, P == 1 ? 0 : int64_t{P * v - 1} * M);
            }
        }
    }
}

}  // namespace
}  // namespace vpp
