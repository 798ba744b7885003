#include "schedule/action.hpp"

#include <gtest/gtest.h>

namespace vpp {
namespace {

TEST(ActionText, ComputingActions) {
    EXPECT_EQ(to_text(Action{ActionKind::F, 0, 1}), "0F1");
    EXPECT_EQ(to_text(Action{ActionKind::B, 2, 3}), "2B3");
    EXPECT_EQ(to_text(Action{ActionKind::I, 2, 0}), "2I0");
    EXPECT_EQ(to_text(Action{ActionKind::W, 12, 34}), "12W34");
}

TEST(ActionText, TransfersNameThePeer) {
    EXPECT_EQ(to_text(Action{ActionKind::SendF, 0, 2, 5, 1}), "0SEND_F2>1");
    EXPECT_EQ(to_text(Action{ActionKind::RecvF, 1, 2, 5, 0}), "1RECV_F2<0");
    EXPECT_EQ(to_text(Action{ActionKind::SendB, 1, 2, 5, 0}), "1SEND_B2>0");
    EXPECT_EQ(to_text(Action{ActionKind::RecvB, 0, 2, 5, 1}), "0RECV_B2<1");
}

TEST(ActionText, ReduceGradHasNoMicrobatch) {
    EXPECT_EQ(to_text(Action{ActionKind::ReduceGrad, 3, 0}), "3REDUCE_GRAD");
}

TEST(ActionText, ListsAreSeparatedByBlanks) {
    EXPECT_EQ(to_text(std::vector<Action>{}), "");
    EXPECT_EQ(to_text(std::vector<Action>{{ActionKind::F, 0, 0}, {ActionKind::B, 0, 0}}), "0F0 0B0");
}

TEST(ActionKinds, GroupsPartTheKinds) {
    using enum ActionKind;
    for (ActionKind kind : {F, B, I, W, SendF, RecvF, SendB, RecvB, ReduceGrad}) {
        const int groups = is_computing(kind) + is_send(kind) + is_receive(kind) + (kind == ReduceGrad);
        EXPECT_EQ(groups, 1) << to_text({kind, 0, 0});
        EXPECT_EQ(is_transfer(kind), is_send(kind) || is_receive(kind));
        EXPECT_EQ(carries_gradient(kind), kind == SendB || kind == RecvB);
        EXPECT_EQ(gives_input_gradient(kind), kind == B || kind == I);
        EXPECT_EQ(gives_weight_gradient(kind), kind == B || kind == W);
    }
}

TEST(ActionKinds, EachHasAWord) {
    using enum ActionKind;
    for (ActionKind kind : {F, B, I, W, SendF, RecvF, SendB, RecvB, ReduceGrad}) {
        EXPECT_EQ(kind_from_word(word_of(kind)), kind);
    }
    EXPECT_STREQ(word_of(ReduceGrad), "REDUCE_GRAD");
    EXPECT_FALSE(kind_from_word("f"));
    EXPECT_FALSE(kind_from_word(""));
}

TEST(ActionOrder, EqualityUsesEveryField) {
    const Action send{ActionKind::SendF, 0, 2, 5, 1};
    Action other = send;
    EXPECT_EQ(send, other);
    other.peer = 2;
    EXPECT_NE(send, other);
    other = send;
    other.edge = 4;
    EXPECT_NE(send, other);
}

}  // namespace
}  // namespace vpp
