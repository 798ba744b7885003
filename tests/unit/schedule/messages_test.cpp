#include "schedule/messages.hpp"

#include <set>

#include "schedule/generators.hpp"
#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

using testing::error_text;
using enum ActionKind;

TEST(EdgeNumbers, NumbersAscendWithTheIds) {
    const EdgeNumbers plain({2, 0, 1, 1});
    EXPECT_EQ(plain.size(), 3U);
    for (int id : {0, 1, 2}) EXPECT_EQ(plain.find(id), id);
    const EdgeNumbers sparse({INT32_MAX, 5, 0});
    EXPECT_EQ(sparse.find(0), 0);
    EXPECT_EQ(sparse.find(5), 1);
    EXPECT_EQ(sparse.find(INT32_MAX), 2);
    for (int id : {1, 2, 6, -1, INT32_MIN}) EXPECT_EQ(sparse.find(id), EdgeNumbers::kNone);
    EXPECT_EQ(EdgeNumbers().find(0), EdgeNumbers::kNone);
}

TEST(MessageNumbers, EndsShareItAndOthersDiffer) {
    const std::vector<ScheduleEdge> edges{{4, 0, 1, true, 0}, {INT32_MAX, 1, 2, true, 1}, {0, 0, 2, false, 0}};
    const Schedule lowered = lower(make_schedule("1F1B", 3, 1, 5), edges);
    const MessageNumbers number(lowered);
    std::set<size_t> sent, received;
    for (const std::vector<Action>& list : lowered.actions) {
        for (const Action& action : list) {
            if (!is_transfer(action.kind)) continue;
            EXPECT_TRUE((is_send(action.kind) ? sent : received).insert(number(action)).second) << to_text(action);
            EXPECT_LT(number(action), number.size());
        }
    }
    EXPECT_EQ(sent, received);
    EXPECT_EQ(sent.size(), 5U * 5);
}

TEST(MessageNumbers, ImpossibleTransfersAreBugs) {
    for (const Action& bad : {Action{SendF, 0, 1, 0, 1}, {SendF, 0, -1, 0, 1}, {SendF, 0, 0, -1, 1}}) {
        EXPECT_CONTAINS(error_text(ErrorKind::Bug, [&] { MessageNumbers({"X", 1, 1, {0}, {{bad}}}); }), "a transfer");
    }
}

TEST(ChannelNumber, EndsShareItAndSoDoValuesAndGradients) {
    std::set<size_t> channels;
    for (int from = 0; from < 3; ++from) {
        for (int to = 0; to < 3; ++to) {
            EXPECT_EQ(channel_number({SendF, 0, 0, 0, to}, from, 3), channel_number({RecvF, 0, 0, 0, from}, to, 3));
            EXPECT_EQ(channel_number({SendF, 0, 0, 0, to}, from, 3), channel_number({SendB, 0, 0, 0, to}, from, 3));
            channels.insert(channel_number({SendF, 0, 0, 0, to}, from, 3));
        }
    }
    EXPECT_EQ(channels.size(), 9U);
}

}  // namespace
}  // namespace vpp
