#include "schedule/replay.hpp"

#include <set>

#include "schedule/generators.hpp"
#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

TEST(MessageKey, EndsShareItAndOthersDiffer) {
    const Action send{ActionKind::SendF, 0, 3, 5, 1};
    EXPECT_EQ(message_key(send), message_key({ActionKind::RecvF, 1, 3, 5, 0}));
    std::set<uint64_t> keys;
    for (ActionKind kind : {ActionKind::SendF, ActionKind::SendB}) {
        for (int edge : {0, 1, 2, INT32_MAX}) {
            for (int microbatch : {0, 1, INT32_MAX}) keys.insert(message_key({kind, 0, microbatch, edge, 1}));
        }
    }
    EXPECT_EQ(keys.size(), 24U);
}

TEST(Replay, EveryActionRunsOnceAndReceivesFollowTheirSends) {
    const Schedule lowered = lower(make_schedule("INTERLEAVED_1F1B", 3, 2, 5), chain_edges(6));
    std::vector<size_t> next(3, 0);
    std::set<uint64_t> sent;
    const std::vector<size_t> done = replay(lowered, [&](int rank, size_t index) {
        EXPECT_EQ(index, next[static_cast<size_t>(rank)]++);
        const Action& action = lowered.actions[static_cast<size_t>(rank)][index];
        if (is_send(action.kind)) sent.insert(message_key(action));
        EXPECT_TRUE(!is_receive(action.kind) || sent.contains(message_key(action))) << to_text(action);
    });
    EXPECT_EQ(done, next);
    for (size_t rank = 0; rank < 3; ++rank) EXPECT_EQ(done[rank], lowered.actions[rank].size());
}

TEST(Replay, StopsWhereAMessageNeverComes) {
    Schedule lowered = lower(make_schedule("GPIPE", 2, 1, 2), chain_edges(2));
    lowered.actions[0].erase(lowered.actions[0].begin() + 3);  // 0SEND_F1>1
    const std::vector<size_t> done = replay(lowered, [](int, size_t) {});
    EXPECT_EQ(to_text(lowered.actions[1][done[1]]), "1RECV_F1<0");
    EXPECT_EQ(to_text(lowered.actions[0][done[0]]), "0RECV_B0<1");
}

TEST(Replay, RendezvousDoesBothSidesAtOnce) {
    const Schedule lowered = lower(make_schedule("GPIPE", 3, 1, 2), chain_edges(3));
    std::vector<std::string> transfers;
    const auto visit = [&](int rank, size_t index) {
        const Action& action = lowered.actions[static_cast<size_t>(rank)][index];
        if (is_transfer(action.kind)) transfers.push_back(to_text(action));
    };
    const std::vector<size_t> done = replay(lowered, visit, Sends::Rendezvous);
    for (size_t rank = 0; rank < 3; ++rank) EXPECT_EQ(done[rank], lowered.actions[rank].size());
    ASSERT_EQ(transfers.size(), 16U);
    EXPECT_EQ(transfers[0], "0SEND_F0>1");
    EXPECT_EQ(transfers[1], "1RECV_F0<0");
    for (size_t k = 0; k < transfers.size(); k += 2) EXPECT_CONTAINS(transfers[k], "SEND") << transfers[k + 1];
}

TEST(Replay, RendezvousStopsWhereBothSend) {
    const Schedule lowered = lower(make_schedule("1F1B", 2, 1, 2), chain_edges(2));
    const std::vector<size_t> done = replay(
        lowered, [](int, size_t) {}, Sends::Rendezvous);
    EXPECT_EQ(to_text(lowered.actions[0][done[0]]), "0SEND_F1>1");
    EXPECT_EQ(to_text(lowered.actions[1][done[1]]), "1SEND_B0>0");
}

}  // namespace
}  // namespace vpp
