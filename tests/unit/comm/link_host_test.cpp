// Parts that go through the host: what comes is the same, no link moves, and memory is held as links hold it.
#include <gtest/gtest.h>

#include "comm/in_process.hpp"
#include "comm/link_transport.hpp"
#include "support/recorded_links.hpp"
#include "unit/comm/linked_messages.hpp"

namespace vpp {
namespace {

using test::RecordedLinks, test::kBothWays, test::kCapacityBytes, test::is_filled_with, test::linked_message,
    test::memory_of;

constexpr Channel kGradients{5, 2, Direction::Replicas};

/// Runs `body` on two ranks over links whose parts go through the host.
void run_through_host(const std::vector<Link>& links, RecordedLinks& recorded,
                      const std::function<void(LinkTransport&)>& body) {
    InProcessWorld({.num_ranks = 2, .delay_probability = 0.3}).run([&](Transport& bytes) {
        const auto maker = recorded.maker(bytes.rank());
        LinkTransport transport(bytes, links, *maker, /*patience_seconds=*/0);
        const ThroughHost through_host(transport, true);
        body(transport);
    });
}

void expect_message(const Buffer& message, uint64_t value, size_t num_bytes) {
    EXPECT_EQ(message.bytes().size(), sizeof(value)) << "without what the transport added";
    EXPECT_EQ(ByteReader(message.bytes()).get<uint64_t>(), value);
    EXPECT_EQ(message.part().num_bytes, num_bytes);
    EXPECT_TRUE(is_filled_with(message.part(), value));
}

TEST(LinkHost, PartsComeAsTheyDoOverLinks) {
    RecordedLinks recorded;
    run_through_host(kBothWays, recorded, [](LinkTransport& transport) {
        for (int m = 0; m < 6; ++m) {
            const Channel channel{3, m, Direction::Forward};
            const bool has_part = m != 4;
            transport.set_through_host(m % 3 != 2);  // one of three goes over the link
            if (transport.rank() == 0) {
                const auto value = static_cast<uint64_t>(m);
                transport.send(1, channel, linked_message(value, has_part ? memory_of(value, 9) : MemoryPart()));
            } else {
                transport.post_receive(0, channel, kCapacityBytes);
                const Buffer message = transport.receive(0, channel);
                transport.finish_sends();
                expect_message(message, static_cast<uint64_t>(m), has_part ? 9 : 0);
            }
        }
        transport.finish_sends();
    });
    EXPECT_EQ(recorded.num_done(), 2 + 2) << "one byte each way at the start, and two messages";
}

TEST(LinkHost, ExchangesComeAsTheyDoOverLinks) {
    RecordedLinks recorded;
    run_through_host({link_of({0, 1}, kGradients)}, recorded, [](LinkTransport& transport) {
        const auto own = static_cast<size_t>(transport.rank()), other = 1 - own;
        Exchange exchange{{0, 1}, kGradients, std::vector<Buffer>(2), std::vector<MessageSize>(2)};
        exchange.sent[other] = linked_message(own, memory_of(own, 100 + own));
        exchange.expected[other] = {sizeof(uint64_t), 100 + other};
        transport.exchange(std::move(exchange));
        expect_message(transport.receive(static_cast<int>(other), kGradients), other, 100 + other);
        transport.finish_sends();
    });
    EXPECT_EQ(recorded.num_done(), 2) << "the start";
}

/// Which memory is held where a rank has sent, or received, so many messages of nine bytes and drops them.
std::vector<size_t> held(bool sends) {
    RecordedLinks recorded;
    std::vector<size_t> counts;
    run_through_host(kBothWays, recorded, [&](LinkTransport& transport) {
        std::vector<std::weak_ptr<std::byte>> sent;
        const auto note = [&] {
            if ((transport.rank() == 0) != sends) return;
            const auto is_held = [](const auto& one) { return !one.expired(); };
            counts.push_back(static_cast<size_t>(sends ? std::ranges::count_if(sent, is_held) : recorded.num_held(9)));
        };
        for (int m = 0; m < 6; ++m) {
            const Channel channel{3, m, Direction::Forward};
            if (transport.rank() == 0) {
                MemoryPart part = memory_of(1, 9);
                sent.push_back(part.data);
                transport.send(1, channel, linked_message(1, std::move(part)));
            } else {
                transport.post_receive(0, channel, kCapacityBytes);
                transport.receive(0, channel);
            }
            note();
        }
        transport.finish_sends();
        note();
    });
    return counts;
}

// A device may be that much behind its rank when parts go over links.
TEST(LinkHost, AStepHoldsMemoryForAsManyMoreAsMayBeUnderWay) {
    EXPECT_EQ(held(/*sends=*/true), (std::vector<size_t>{1, 2, 3, 3, 3, 3, 0}));
    EXPECT_EQ(held(/*sends=*/false), (std::vector<size_t>{3, 3, 3, 3, 3, 3, 0}));
}

}  // namespace
}  // namespace vpp
