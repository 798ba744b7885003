// Random schedules over links that find what would stand still.
#include <gtest/gtest.h>

#include <set>

#include "comm/link_transport.hpp"
#include "support/recorded_links.hpp"
#include "unit/comm/linked_messages.hpp"
#include "unit/comm/random_schedule.hpp"

namespace vpp {
namespace {

using test::kCapacityBytes, test::is_filled_with, test::linked_message, test::memory_of;
using test::RandomSchedule, test::RecordedLinks, test::run;

Channel channel_of(const Action& transfer) {
    return {transfer.edge, transfer.microbatch,
            carries_gradient(transfer.kind) ? Direction::Backward : Direction::Forward};
}

/// Two of three links, others with another seed: what has none goes through the host. Seed 0: all.
std::vector<Link> links_of(const Schedule& lowered, uint64_t seed) {
    std::set<Link> links;
    for (int rank = 0; rank < lowered.num_ranks; ++rank) {
        for (const Action& action : lowered.actions[static_cast<size_t>(rank)]) {
            if (!is_transfer(action.kind) || !is_send(action.kind)) continue;
            const auto pair = static_cast<uint64_t>(rank * lowered.num_ranks + action.peer);
            if (seed == 0 || combine_key(seed, pair) % 3 != 0) links.insert({{rank, action.peer}});
        }
    }
    return {links.begin(), links.end()};
}

constexpr size_t kMostPartBytes = 200;

/// One byte pattern and one length for each message.
MemoryPart part_of(const Action& transfer) {
    const uint64_t key = combine_key(static_cast<uint64_t>(transfer.edge), static_cast<uint64_t>(transfer.microbatch)) +
                         (carries_gradient(transfer.kind) ? 1 : 0);
    return memory_of(key, 1 + key % kMostPartBytes);
}

/// The transfers of this rank in the order of its list, twice, as in two steps.
void run_transfers(LinkTransport& transport, const Schedule& lowered) {
    for (int step = 0; step < 2; ++step) {
        std::vector<std::pair<Action, MemoryPart>> received;
        for (const Action& action : lowered.actions[static_cast<size_t>(transport.rank())]) {
            if (!is_transfer(action.kind)) continue;
            if (is_send(action.kind)) {
                transport.send(action.peer, channel_of(action), linked_message(1, part_of(action)));
                continue;
            }
            transport.post_receive(action.peer, channel_of(action), kCapacityBytes + kMostPartBytes);
            received.emplace_back(action, transport.receive(action.peer, channel_of(action)).part());
        }
        transport.finish_sends();
        for (const auto& [action, part] : received) {
            const MemoryPart sent = part_of(action);
            ASSERT_EQ(part.num_bytes, sent.num_bytes);
            ASSERT_TRUE(is_filled_with(part, static_cast<uint64_t>(*sent.data)));
        }
    }
}

/// What the run of a schedule ends with.
std::string run_schedule(const Schedule& lowered, RecordedLinks& recorded, uint64_t seed, uint64_t link_seed = 0) {
    return run(
        lowered.num_ranks, links_of(lowered, link_seed), recorded,
        [&](LinkTransport& transport) { run_transfers(transport, lowered); }, seed);
}

void run_random_schedules(uint64_t first, uint64_t count) {
    int64_t num_links = 0, most_under_way = 0;
    for (uint64_t seed = first; seed < first + count; ++seed) {
        const Schedule lowered = RandomSchedule(seed).lowered(MessageOrder::Channels);
        RecordedLinks recorded;
        ASSERT_EQ(run_schedule(lowered, recorded, seed, seed % 2 == 0 ? 0 : seed), "") << seed;
        num_links += recorded.num_links();
        most_under_way = std::max(most_under_way, recorded.most_under_way());
    }
    EXPECT_GT(num_links, static_cast<int64_t>(count)) << "schedules without messages prove nothing";
    EXPECT_GT(most_under_way, 3) << "nothing had to wait";
}

TEST(LinkedSchedules, AnyScheduleThatEndsEndsOverLinks) {
    run_random_schedules(0, 2000);
}

TEST(LinkedSchedulesFull, AnyScheduleThatEndsEndsOverLinks) {
    run_random_schedules(10000, 40000);
}

struct Spoiled {
    RecordedLinks::Options options = {};
    MessageOrder order = MessageOrder::Channels;
    bool has_all_links = true;
};

/// Of 100 schedules those that end with these words; the others end well.
int count_ends(const std::string& words, const Spoiled& spoiled) {
    int count = 0;
    for (uint64_t seed = 1; seed <= 100; ++seed) {
        RecordedLinks recorded(spoiled.options);
        const Schedule lowered = RandomSchedule(seed).lowered(spoiled.order);
        const std::string error = run_schedule(lowered, recorded, seed, spoiled.has_all_links ? 0 : seed);
        if (error.empty()) continue;
        EXPECT_CONTAINS(error, words);
        ++count;
    }
    return count;
}

// What this file proves could fail: else many stand still, or cross.
TEST(LinkedSchedules, LinksThatShareAStreamStandStill) {
    EXPECT_GT(count_ends("no rank can go on", {.options = {.one_queue = true}}), 20);
}

TEST(LinkedSchedules, WhoWaitsForSendsToReadStandsStill) {
    EXPECT_GT(count_ends("no rank can go on", {.options = {.reads_wait_for_sends = true}, .has_all_links = false}), 5);
}

TEST(LinkedSchedules, SchedulesForTaggedChannelsCross) {
    EXPECT_GT(count_ends("and is received as message", {.order = MessageOrder::BeforeConsumer}), 20);
}

}  // namespace
}  // namespace vpp
