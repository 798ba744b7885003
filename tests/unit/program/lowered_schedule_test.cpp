#include "program/lowered_schedule.hpp"

#include <gtest/gtest.h>

#include "plan/reader.hpp"
#include "schedule/generators.hpp"
#include "unit/plan/plan_texts.hpp"

namespace vpp {
namespace {

Plan plan_over(const std::string& transport, bool overlap) {
    Plan plan;
    plan.mesh.transport = transport;
    plan.pipeline.overlap_p2p_comm = overlap;
    return plan;
}

TEST(MessageOrderOfAPlan, FollowsTheTransport) {
    EXPECT_EQ(message_order(plan_over("auto", true)), MessageOrder::BeforeConsumer);
    EXPECT_EQ(message_order(plan_over("mpi", true)), MessageOrder::BeforeConsumer);
    EXPECT_EQ(message_order(plan_over("nccl", true)), MessageOrder::Channels);
    EXPECT_EQ(message_order(plan_over("nccl", false)), MessageOrder::Global) << "which keeps the order of links too";
}

/// Stage 0 on rank 0 makes a value for stage 3 and then one for stage 1, both on rank 1.
Split crossing_split() {
    Split split;
    split.stages.resize(4);
    const auto add = [&](int id, int consumer) {
        Edge edge;
        edge.id = id;
        edge.producer = 0;
        edge.consumer = consumer;
        edge.gradient_to = 0;
        edge.has_gradient = false;
        split.edges.push_back(edge);
    };
    add(0, 3);
    add(1, 1);
    return split;
}

TEST(LowerAndProve, ReceivesStandInTheOrderOfTheTransport) {
    const Schedule compute{
        "X",
        2,
        1,
        {0, 1, 0, 1},
        {{{ActionKind::F, 0, 0}, {ActionKind::F, 2, 0}}, {{ActionKind::F, 1, 0}, {ActionKind::F, 3, 0}}},
        true};
    const Split split = crossing_split();
    const auto receives = [&](MessageOrder order) {
        return to_text(lower_and_prove(compute, split, order, /*reduces=*/false).actions[1]);
    };
    EXPECT_EQ(receives(MessageOrder::BeforeConsumer), "1RECV_F0<0 1F0 3RECV_F0<0 3F0");
    EXPECT_EQ(receives(MessageOrder::Channels), "3RECV_F0<0 1RECV_F0<0 1F0 3F0");
}

TEST(LowerAndProve, WhatIsLoweredIsProved) {
    const Split split = crossing_split();
    Schedule compute{"X",
                     2,
                     1,
                     {0, 1, 0, 1},
                     {{{ActionKind::F, 0, 0}, {ActionKind::F, 2, 0}}, {{ActionKind::F, 1, 0}, {ActionKind::F, 3, 0}}},
                     true};
    compute.actions[0].pop_back();
    EXPECT_THROW(lower_and_prove(compute, split, MessageOrder::BeforeConsumer, /*reduces=*/false), Error);
}

TEST(CheckOptionsOfAnOrder, AskForWhatTheTransportNeeds) {
    for (const bool reduces : {false, true}) {
        for (const MessageOrder order : {MessageOrder::BeforeConsumer, MessageOrder::Channels, MessageOrder::Global}) {
            const CheckOptions options = check_options(order, reduces);
            EXPECT_EQ(options.ordered_channels, order == MessageOrder::Channels);
            EXPECT_EQ(options.rendezvous, order == MessageOrder::Global);
            EXPECT_EQ(options.reduces, reduces);
        }
    }
}

}  // namespace
}  // namespace vpp
