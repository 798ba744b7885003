#include "schedule/lowering.hpp"

#include "schedule/generators.hpp"
#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

using testing::error_text;
using testing::texts;

TEST(Lower, SendsFollowAndReceivesPrecedeTheirAction) {
    const Schedule lowered = lower(make_schedule("1F1B", 2, 1, 2), chain_edges(2));
    EXPECT_EQ(texts(lowered), (std::vector<std::string>{
                                  "0F0 0SEND_F0>1 0F1 0SEND_F1>1 0RECV_B0<1 0B0 0RECV_B1<1 0B1",
                                  "1RECV_F0<0 1F0 1B0 1SEND_B0>0 1RECV_F1<0 1F1 1B1 1SEND_B1>0",
                              }));
}

TEST(Lower, TransfersCarryTheEdge) {
    const Schedule lowered = lower(make_schedule("GPIPE", 2, 1, 1), {{42, 0, 1, true, 0}});
    EXPECT_EQ(lowered.actions[0][1], (Action{ActionKind::SendF, 0, 0, 42, 1}));
    EXPECT_EQ(lowered.actions[1][0], (Action{ActionKind::RecvF, 1, 0, 42, 0}));
    EXPECT_EQ(lowered.actions[1][3], (Action{ActionKind::SendB, 1, 0, 42, 0}));
    EXPECT_EQ(lowered.actions[0][2], (Action{ActionKind::RecvB, 0, 0, 42, 1}));
}

TEST(Lower, StagesOnOneRankHandOverDirectly) {
    const Schedule one_rank = make_schedule("INTERLEAVED_1F1B", 1, 3, 2);
    EXPECT_EQ(lower(one_rank, chain_edges(3)).actions, one_rank.actions);
    // Loop placement: 0 and 2 share rank 0, so the skip 0 -> 2 needs nothing.
    const Schedule loop = make_schedule("INTERLEAVED_1F1B", 2, 2, 2);
    EXPECT_EQ(lower(loop, {{0, 0, 2, true, 0}}).actions, loop.actions);
}

TEST(Lower, SkipEdgesGoStraightToTheirConsumer) {
    const Schedule lowered = lower(make_schedule("GPIPE", 3, 1, 1), {{0, 0, 2, true, 0}});
    EXPECT_EQ(texts(lowered), (std::vector<std::string>{
                                  "0F0 0SEND_F0>2 0RECV_B0<2 0B0",
                                  "1F0 1B0",
                                  "2RECV_F0<0 2F0 2B0 2SEND_B0>0",
                              }));
}

// A value of stage 0 used by 1, 2 and 3: its gradient travels 3 -> 2 -> 1 -> 0, last consumer first.
TEST(Lower, GradientsTravelBackThroughTheConsumers) {
    const std::vector<ScheduleEdge> edges{{0, 0, 1, true, 0}, {1, 0, 2, true, 1}, {2, 0, 3, true, 2}};
    const Schedule lowered = lower(make_schedule("GPIPE", 4, 1, 1), edges);
    EXPECT_EQ(texts(lowered), (std::vector<std::string>{
                                  "0F0 0SEND_F0>1 0SEND_F0>2 0SEND_F0>3 0RECV_B0<1 0B0",
                                  "1RECV_F0<0 1F0 1RECV_B0<2 1B0 1SEND_B0>0",
                                  "2RECV_F0<0 2F0 2RECV_B0<3 2B0 2SEND_B0>1",
                                  "3RECV_F0<0 3F0 3B0 3SEND_B0>2",
                              }));
    EXPECT_NO_THROW(check_schedule(lowered, edges));
}

// The value stays on rank 0 (stages 0 and 2) but its gradient goes by stage 1 on rank 1.
TEST(Lower, ValueAndGradientMayDifferInNeedingATransfer) {
    const std::vector<ScheduleEdge> edges{{0, 0, 1, true, 0}, {1, 0, 2, true, 1}};
    Schedule compute = make_schedule("INTERLEAVED_1F1B", 2, 2, 1);
    const Schedule lowered = lower(compute, edges);
    EXPECT_EQ(texts(lowered), (std::vector<std::string>{
                                  "0F0 0SEND_F0>1 2F0 2B0 2SEND_B0>1 0RECV_B0<1 0B0",
                                  "1RECV_F0<0 1F0 3F0 3B0 1RECV_B0<0 1B0 1SEND_B0>0",
                              }));
    EXPECT_EQ(check_schedule(lowered, edges).num_messages, 3);
}

TEST(Lower, ValuesWithoutGradientGoForwardOnly) {
    const Schedule lowered = lower(make_schedule("GPIPE", 2, 1, 1), {{0, 0, 1, false, 0}});
    EXPECT_EQ(texts(lowered), (std::vector<std::string>{"0F0 0SEND_F0>1 0B0", "1RECV_F0<0 1F0 1B0"}));
}

TEST(Lower, ForwardOnlySchedulesSendNoGradients) {
    const Schedule lowered = lower(make_schedule("FORWARD_ONLY", 2, 1, 1), chain_edges(2));
    EXPECT_EQ(texts(lowered), (std::vector<std::string>{"0F0 0SEND_F0>1", "1RECV_F0<0 1F0"}));
}

TEST(Lower, InputGradientTakesThePlaceOfTheBackward) {
    using enum ActionKind;
    const Schedule split{
        "X", 2, 1, {0, 1}, {{{F, 0, 0}, {I, 0, 0}, {W, 0, 0}}, {{F, 1, 0}, {I, 1, 0}, {W, 1, 0}, {ReduceGrad, 1}}}};
    const Schedule lowered = lower(split, chain_edges(2));
    EXPECT_EQ(texts(lowered), (std::vector<std::string>{
                                  "0F0 0SEND_F0>1 0RECV_B0<1 0I0 0W0",
                                  "1RECV_F0<0 1F0 1I0 1SEND_B0>0 1W0 1REDUCE_GRAD",
                              }));
    EXPECT_NO_THROW(check_schedule(lowered, chain_edges(2)));
}

TEST(Lower, GradientsAreReducedAfterTheLastContribution) {
    const Schedule lowered = lower(make_schedule("1F1B", 2, 1, 2), chain_edges(2), {.reduce_gradients = true});
    EXPECT_EQ(texts(lowered), (std::vector<std::string>{
                                  "0F0 0SEND_F0>1 0F1 0SEND_F1>1 0RECV_B0<1 0B0 0RECV_B1<1 0B1 0REDUCE_GRAD",
                                  "1RECV_F0<0 1F0 1B0 1SEND_B0>0 1RECV_F1<0 1F1 1B1 1SEND_B1>0 1REDUCE_GRAD",
                              }));
    EXPECT_NO_THROW(check_schedule(lowered, chain_edges(2), {.reduces = true}));
    EXPECT_CONTAINS(error_text(ErrorKind::Plan,
                               [&] {
                                   const Schedule without = lower(make_schedule("1F1B", 2, 1, 2), chain_edges(2));
                                   check_schedule(without, chain_edges(2), {.reduces = true});
                               }),
                    "0REDUCE_GRAD is missing");
}

TEST(Lower, ReductionsFollowW) {
    using enum ActionKind;
    const Schedule split{"X", 1, 2, {0}, {{{F, 0, 0}, {I, 0, 0}, {F, 0, 1}, {B, 0, 1}, {W, 0, 0}}}};
    EXPECT_EQ(to_text(lower(split, {}, {.reduce_gradients = true}).actions[0]), "0F0 0I0 0F1 0B1 0W0 0REDUCE_GRAD");
    Schedule own = split;
    own.actions[0].push_back({ReduceGrad, 0});
    EXPECT_EQ(lower(own, {}, {.reduce_gradients = true}).actions, own.actions) << "one is enough";
    const Schedule evaluation = make_schedule("FORWARD_ONLY", 1, 1, 2);
    EXPECT_EQ(lower(evaluation, {}, {.reduce_gradients = true}).actions, evaluation.actions);
}

// The last backward is the first half of a pair: the reduction waits for both.
TEST(Lower, ReductionsDoNotPartAPair) {
    using enum ActionKind;
    Action last{B, 0, 0};
    last.paired = true;
    const Schedule schedule{"X", 1, 1, {0, 0}, {{{F, 0, 0}, last, {F, 1, 0}, {B, 1, 0}}}};
    EXPECT_EQ(to_text(lower(schedule, {}, {.reduce_gradients = true}).actions[0]),
              "0F0 0B0& 1F0 0REDUCE_GRAD 1B0 1REDUCE_GRAD");
}

TEST(Lower, NothingIsLoweredTwice) {
    const Schedule lowered = lower(make_schedule("1F1B", 2, 1, 2), chain_edges(2));
    EXPECT_CONTAINS(error_text(ErrorKind::Bug, [&] { lower(lowered, chain_edges(2)); }), "lowered once");
}

TEST(Lower, ActionsOfMissingStagesAreBugs) {
    const Schedule schedule{"X", 1, 1, {0}, {{{ActionKind::F, 1, 0}}}};
    EXPECT_CONTAINS(error_text(ErrorKind::Bug, [&] { lower(schedule, {}); }), "belongs to a stage");
}

}  // namespace
}  // namespace vpp
