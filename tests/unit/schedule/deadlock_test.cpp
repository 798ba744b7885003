#include "schedule/deadlock.hpp"

#include "schedule/generators.hpp"
#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

using enum ActionKind;

TEST(DeadlockText, IsEmptyWhereListsEnd) {
    const Schedule lowered = lower(make_schedule("INTERLEAVED_1F1B", 3, 2, 6), chain_edges(6));
    EXPECT_EQ(deadlock_text(lowered, Sends::Buffered), "");
    EXPECT_EQ(deadlock_text(lower(make_schedule("FORWARD_ONLY", 3, 1, 6), chain_edges(3)), Sends::Rendezvous), "");
}

// Three ranks wait for each other; rank 3 waits for one of them and is only counted.
TEST(DeadlockText, NamesTheCircleFromItsSmallestRank) {
    const Schedule lowered{"X",
                           4,
                           1,
                           {0, 1, 2, 3},
                           {{{RecvF, 0, 0, 0, 3}, {SendF, 0, 0, 9, 2}},
                            {{RecvF, 1, 0, 1, 3}, {SendF, 1, 0, 2, 3}},
                            {{RecvF, 2, 0, 9, 0}},
                            {{RecvF, 3, 0, 2, 1}, {SendF, 3, 0, 1, 1}, {SendF, 3, 0, 0, 0}}}};
    EXPECT_EQ(
        deadlock_text(lowered, Sends::Buffered),
        "it never ends: rank 1 waits at 1RECV_F0<3 (action 0 of 2, edge 1) for 3SEND_F0>1 (action 1 of 3, edge 1) "
        "of rank 3; rank 3 waits at 3RECV_F0<1 (action 0 of 3, edge 2) for 1SEND_F0>3 (action 1 of 2, edge 2) of "
        "rank 1; 2 more ranks wait; change the order of these ranks' actions");
}

// NCCL on one stream: both ranks stand in [SEND_F, ...] with what the other needs behind it.
TEST(DeadlockText, RendezvousNeedsOneSideToReceiveFirst) {
    const Action to_one{SendF, 0, 0, 0, 1}, at_one{RecvF, 1, 0, 0, 0}, to_zero{SendB, 1, 0, 0, 0},
        at_zero{RecvB, 0, 0, 0, 1};
    const Schedule both_send{"X", 2, 1, {0, 1}, {{to_one, at_zero}, {to_zero, at_one}}};
    EXPECT_EQ(deadlock_text(both_send, Sends::Buffered), "");
    EXPECT_CONTAINS(deadlock_text(both_send, Sends::Rendezvous), "rank 0 waits at 0SEND_F0>1");
    const Schedule one_receives{"X", 2, 1, {0, 1}, {{to_one, at_zero}, {at_one, to_zero}}};
    EXPECT_EQ(deadlock_text(one_receives, Sends::Rendezvous), "");
}

TEST(CrossingText, ChannelsAreLookedAtOneByOne) {
    // What goes to one rank, values and gradients, keeps its order.
    const Action value{SendF, 0, 0, 0, 1}, second{SendF, 0, 1, 0, 1}, gradient{SendB, 0, 0, 1, 1};
    const Action value_in{RecvF, 1, 0, 0, 0}, second_in{RecvF, 1, 1, 0, 0}, gradient_in{RecvB, 1, 0, 1, 0};
    const Action aside{SendF, 0, 0, 2, 2}, aside_in{RecvF, 2, 0, 2, 0};
    EXPECT_EQ(crossing_text({"X", 3, 2, {0, 1, 2}, {{aside, value}, {value_in}, {aside_in}}}), "");
    EXPECT_EQ(crossing_text({"X", 2, 2, {0, 1}, {{value, gradient}, {value_in, gradient_in}}}), "");
    EXPECT_CONTAINS(crossing_text({"X", 2, 2, {0, 1}, {{value, gradient}, {gradient_in, value_in}}}),
                    "rank 1 receives 1RECV_B0<0 (action 0 of 2, edge 1) where rank 0 sends 0SEND_F0>1 (action 0 of 2");
    EXPECT_EQ(crossing_text({"X", 2, 2, {0, 1}, {{value, second}, {value_in, second_in}}}), "");
    EXPECT_CONTAINS(crossing_text({"X", 2, 2, {0, 1}, {{value, second}, {second_in, value_in}}}),
                    "rank 1 receives 1RECV_F1<0 (action 0 of 2, edge 0) where rank 0 sends 0SEND_F0>1 (action 0 of 2");
}

}  // namespace
}  // namespace vpp
