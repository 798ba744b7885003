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

TEST(ForwardsOf, KeepsTheOrderAndThePlacement) {
    Schedule v{"CUSTOM", 2, 2, {0, 1, 1, 0}, {}, false};
    const auto act = [](ActionKind kind, int stage, int microbatch, bool paired = false) {
        return Action{kind, stage, microbatch, -1, -1, paired};
    };
    using enum ActionKind;
    v.actions = {{act(F, 0, 0), act(F, 0, 1), act(F, 3, 0), act(F, 3, 1, true), act(B, 3, 0), act(B, 3, 1),
                  act(B, 0, 0), act(B, 0, 1)},
                 {act(F, 1, 0), act(F, 2, 0), act(F, 1, 1), act(F, 2, 1), act(B, 2, 0), act(B, 1, 0), act(B, 2, 1),
                  act(B, 1, 1)}};
    const Schedule lowered = testing::prove(v).lowered;
    const Schedule forwards = forwards_of(lowered);
    EXPECT_EQ(testing::texts(forwards), (std::vector<std::string>{"0F0 0F1 3F0 3F1", "1F0 2F0 1F1 2F1"}));
    EXPECT_EQ(forwards.rank_of_stage, v.rank_of_stage);
    EXPECT_EQ(testing::prove(forwards).facts.num_computing, 8);
}

}  // namespace
}  // namespace vpp
