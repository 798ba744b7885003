#include "comm/link_transport.hpp"

#include "comm/in_process.hpp"
#include "comm/passing_transport.hpp"
#include "comm/watchdog.hpp"
#include "support/recorded_links.hpp"
#include "unit/comm/linked_messages.hpp"
#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

using test::kBothWays, test::kCapacityBytes, test::is_filled_with, test::linked_message, test::memory_of;
using test::RecordedLinks, test::run;

uint64_t number_of(const Buffer& message) {
    return ByteReader(message.bytes()).get<uint64_t>();
}

constexpr Channel kForward{3, 2, Direction::Forward};
constexpr Channel kBackward{3, 2, Direction::Backward};

/// Notes for what the device of rank 0 waits.
class WatchedTransport : public PassingTransport {
  public:
    WatchedTransport(Transport& inner, Watchdog& watchdog) : PassingTransport(inner), watchdog_(watchdog) {}
    Watchdog::Phase begin_device_wait(const Wait& what) override { return watchdog_.begin(to_text(what.channel), 9); }
    Watchdog::Phase begin_end(const std::string& text, double seconds, int code) override {
        return watchdog_.begin(text, seconds, code);
    }

  private:
    Watchdog& watchdog_;
};

/// What the watchdog of rank 1 says long after it has received; `stuck_after`: as of the links; `sends`: it only sends.
std::string said_by_watchdog(int64_t stuck_after, bool finishes, bool sends = false) {
    RecordedLinks recorded({.stuck_after = stuck_after});
    std::string said;
    InProcessWorld({.num_ranks = 2}).run([&](Transport& bytes) {
        double now = 0;
        const auto note = [&](const std::string& text, int) { said += text; };
        Watchdog watchdog({.on_fatal = note, .now = [&] { return now; }, .period_seconds = 0});
        WatchedTransport watched(bytes, watchdog);
        const auto maker = recorded.maker(bytes.rank());
        LinkTransport transport(watched, kBothWays, *maker, /*patience_seconds=*/0);
        watchdog.look();
        if (bytes.rank() == 0) {
            transport.send(1, kForward, linked_message(7, memory_of(9)));
        } else {
            transport.post_receive(0, kForward, kCapacityBytes);
            transport.receive(0, kForward);
            if (finishes) transport.finish_sends();
            for (now += 5; now < 100; now += 0.1) {
                watchdog.look();
                if (sends) transport.send(0, kBackward, linked_message(8, memory_of(1)));
            }
        }
    });
    return said;
}

TEST(LinkTransport, AReceiveThatDoesNotEndIsWatchedThoughNoCallWaits) {
    constexpr int64_t kConnecting = 2;
    EXPECT_EQ(said_by_watchdog(kConnecting, /*finishes=*/false), to_text(kForward));
    EXPECT_EQ(said_by_watchdog(-1, /*finishes=*/true), "");
    EXPECT_EQ(said_by_watchdog(-1, /*finishes=*/false, /*sends=*/true), "") << "what it waited for has come";
}

/// Each rank sends what the other does not take, and calls something every `pause_seconds`.
std::string said_of_a_send(double pause_seconds, bool has_part) {
    RecordedLinks recorded({.stuck_after = 2});  // the connecting
    std::string said;
    InProcessWorld({.num_ranks = 2}).run([&](Transport& bytes) {
        double now = 0;
        const auto note = [&](const std::string& text, int) { said += bytes.rank() == 0 ? text : ""; };
        Watchdog watchdog({.on_fatal = note, .now = [&] { return now; }, .period_seconds = 0});
        WatchedTransport watched(bytes, watchdog);
        const auto maker = recorded.maker(bytes.rank());
        LinkTransport transport(watched, kBothWays, *maker, /*patience_seconds=*/0);
        const int other = 1 - bytes.rank();
        transport.send(other, bytes.rank() == 0 ? kForward : kBackward,
                       linked_message(7, has_part ? memory_of(9) : MemoryPart()));
        for (int i = 0; i < 4; ++i) {
            for (const double end = now + pause_seconds; now < end; now += 0.1) watchdog.look();
            transport.send(other, Channel{i, 0, Direction::Control}, linked_message(8));
        }
    });
    return said;
}

TEST(LinkTransport, WhoStaysAwayWhileHisDeviceSendsIsWatched) {
    EXPECT_EQ(said_of_a_send(/*pause_seconds=*/10, /*has_part=*/true), to_text(kForward));
    EXPECT_EQ(said_of_a_send(8, true), "") << "it is not taken in four times that";
    EXPECT_EQ(said_of_a_send(10, false), "");
}

/// What is said where memory for what comes is had only when the device has done all.
std::string said_while_memory_is_taken(double seconds, const std::vector<Link>& links = kBothWays) {
    double now = 0;
    std::string said;
    const auto note = [&](const std::string& text, int) { said += text; };
    Watchdog watchdog({.on_fatal = note, .now = [&] { return now; }, .period_seconds = 0});
    RecordedLinks recorded({.on_memory = [&](size_t num_bytes) {
        if (num_bytes == 1) return;  // the connecting
        for (const double end = now + seconds; now < end; now += 0.1) watchdog.look();
    }});
    InProcessWorld({.num_ranks = 2}).run([&](Transport& bytes) {
        WatchedTransport watched(bytes, watchdog);
        const auto maker = recorded.maker(bytes.rank());
        LinkTransport transport(watched, links, *maker, /*patience_seconds=*/0);
        if (bytes.rank() == 0) {
            transport.send(1, kForward, linked_message(7, memory_of(9)));
        } else {
            transport.post_receive(0, kForward, kCapacityBytes);
            transport.receive(0, kForward);
        }
        transport.finish_sends();
    });
    return said;
}

TEST(LinkTransport, WhoWaitsForMemoryForWhatComesIsWatched) {
    EXPECT_EQ(said_while_memory_is_taken(/*seconds=*/10), to_text(kForward));
    EXPECT_EQ(said_while_memory_is_taken(8), "");
    EXPECT_EQ(said_while_memory_is_taken(10, {{{1, 0}}}), to_text(kForward)) << "through the host, beside other links";
}

TEST(LinkTransport, AnExchangeIsWatchedFromWhenItIsTaken) {
    RecordedLinks recorded({.stuck_after = 2});  // the connecting
    const Channel channel{5, 2, Direction::Replicas};
    const std::vector<int> both{0, 1};
    InProcessWorld({.num_ranks = 2}).run([&](Transport& bytes) {
        double now = 0;
        std::string said;
        const auto note = [&](const std::string& text, int) { said += text; };
        Watchdog watchdog({.on_fatal = note, .now = [&] { return now; }, .period_seconds = 0});
        WatchedTransport watched(bytes, watchdog);
        const auto maker = recorded.maker(bytes.rank());
        LinkTransport transport(watched, {link_of(both, channel)}, *maker, /*patience_seconds=*/0);
        const auto wait_long = [&] {
            for (const double end = now + 100; now < end; now += 0.1) {
                transport.send(1 - bytes.rank(), Channel{0, 0, Direction::Control}, linked_message(8));
                watchdog.look();
            }
        };
        Exchange exchange{both, channel, std::vector<Buffer>(2), std::vector<MessageSize>(2)};
        const auto other = static_cast<size_t>(1 - bytes.rank());
        exchange.sent[other] = linked_message(7, memory_of(9));
        exchange.expected[other] = {sizeof(uint64_t), sizeof(uint64_t)};
        transport.exchange(std::move(exchange));
        wait_long();
        EXPECT_EQ(said, "");
        transport.receive(1 - bytes.rank(), channel);
        wait_long();
        EXPECT_EQ(said, to_text(channel));
    });
}

TEST(LinkTransport, BytesAndMemoryArriveTogether) {
    RecordedLinks recorded;
    const std::string error = run(2, kBothWays, recorded, [](LinkTransport& transport) {
        EXPECT_TRUE(transport.carries_device_memory());
        if (transport.rank() == 0) {
            transport.send(1, kForward, linked_message(7, memory_of(9, 100)));
            transport.post_receive(1, kBackward, kCapacityBytes);
            const Buffer answer = transport.receive(1, kBackward);
            EXPECT_EQ(number_of(answer), 8U);
            EXPECT_FALSE(answer.part().data) << "it was sent without one";
            transport.finish_sends();
        } else {
            transport.post_receive(0, kForward, kAnySize);
            const Buffer message = transport.receive(0, kForward);
            EXPECT_EQ(message.bytes().size(), sizeof(uint64_t)) << "without what the transport added";
            EXPECT_EQ(number_of(message), 7U);
            transport.send(0, kBackward, linked_message(8));
            transport.finish_sends();
            EXPECT_EQ(message.part().num_bytes, 100U);
            EXPECT_TRUE(is_filled_with(message.part(), 9));
        }
    });
    EXPECT_EQ(error, "");
    EXPECT_EQ(recorded.num_links(), 2);
    EXPECT_EQ(recorded.num_done(), 3) << "one byte over each link at the start, and the message";
}

/// Rank 0 sends a part of so many bytes to rank 1.
void send_one(LinkTransport& transport, const Channel& channel, size_t num_bytes) {
    if (transport.rank() == 0) {
        transport.send(1, channel, linked_message(1, memory_of(1, num_bytes)));
    } else {
        transport.post_receive(0, channel, kCapacityBytes);
        transport.receive(0, channel);
    }
    transport.finish_sends();
}

TEST(LinkTransport, TimesOfPartsAreKeptWhereAsked) {
    RecordedLinks recorded;
    const std::string error = run(2, kBothWays, recorded, [](LinkTransport& transport) {
        const auto send_over = [&](int edge) { send_one(transport, {edge, 0, Direction::Forward}, 100); };
        send_over(1);
        EXPECT_TRUE(transport.take_part_spans().empty()) << "nobody asked";
        PassingTransport above(static_cast<Transport&>(transport));
        above.time_parts(true);
        const int64_t before = steady_nanoseconds();
        send_over(2);
        send_over(3);
        const int64_t behind = steady_nanoseconds();
        const std::vector<PartSpan> spans = above.take_part_spans();
        ASSERT_EQ(spans.size(), 2U);
        for (size_t i = 0; i < spans.size(); ++i) {
            EXPECT_EQ(spans[i].peer, 1 - transport.rank());
            EXPECT_EQ(spans[i].channel.edge, 2 + static_cast<int>(i));
            EXPECT_EQ(spans[i].sends, transport.rank() == 0);
            EXPECT_LE(before, spans[i].begin);
            EXPECT_LE(spans[i].begin, spans[i].end);
            EXPECT_LE(spans[i].end, behind);
        }
        EXPECT_TRUE(above.take_part_spans().empty()) << "they are forgotten";
        above.time_parts(false);
        send_over(4);
        EXPECT_TRUE(above.take_part_spans().empty());
    });
    EXPECT_EQ(error, "");
}

TEST(LinkTransport, ControlMessagesGoPastTheLinks) {
    RecordedLinks recorded;
    const std::string error = run(2, {}, recorded, [](LinkTransport& transport) {
        const Channel control{5, 0, Direction::Control};
        if (transport.rank() == 0) {
            transport.send(1, control, linked_message(3));
            transport.finish_sends();
        } else {
            transport.post_receive(0, control, sizeof(uint64_t));
            EXPECT_EQ(number_of(transport.receive(0, control)), 3U);
        }
    });
    EXPECT_EQ(error, "");
    EXPECT_EQ(recorded.num_links(), 0);
}

// Two messages of one link that are received in the other order: what NCCL would swap without a word.
TEST(LinkTransport, MessagesThatCrossAreABug) {
    RecordedLinks recorded;
    const Channel other{4, 2, Direction::Forward};
    const std::string error = run(2, kBothWays, recorded, [&](LinkTransport& transport) {
        if (transport.rank() == 0) {
            transport.send(1, kForward, linked_message(1, memory_of(1)));
            transport.send(1, other, linked_message(2, memory_of(2)));
        } else {
            transport.post_receive(0, other, kCapacityBytes);
            transport.receive(0, other);
        }
        transport.finish_sends();
    });
    EXPECT_CONTAINS(error,
                    "forward edge 4, microbatch 2 was sent as message 2 of the link from rank 0 to rank 1 and "
                    "is received as message 1");
}

TEST(LinkTransport, AnExchangeNeedsItsLink) {
    RecordedLinks recorded;
    const std::string of_replicas = run(2, {}, recorded, [&](LinkTransport& transport) {
        transport.exchange({{1, 0}, {0, 2, Direction::Replicas}, {{}, {}}, {{}, {}}});
    });
    EXPECT_CONTAINS(of_replicas, "there is no link 0 between replicas on ranks 1, 0");
}

constexpr Channel kExchange{5, 2, Direction::Replicas};
const std::vector<int> kGroup{2, 0, 1};  // in another order than that of the ranks
const std::vector<Link> kGroupLink{link_of(kGroup, kExchange)};

uint64_t value_between(int from, int to) {
    return static_cast<uint64_t>(10 * from + to);
}

/// Every rank sends each other a message with a part of its own length.
Exchange all_to_all(int rank, const Channel& channel) {
    Exchange exchange{kGroup, channel, {}, {}};
    for (int peer : kGroup) {
        const bool is_own = peer == rank;
        const uint64_t out = value_between(rank, peer), in = value_between(peer, rank);
        exchange.sent.push_back(is_own ? Buffer() : linked_message(out, memory_of(out, 1 + out)));
        exchange.expected.push_back(is_own ? MessageSize{} : MessageSize{sizeof(uint64_t), 1 + in});
    }
    return exchange;
}

/// What came of all_to_all.
void take_all(LinkTransport& transport, const Channel& channel) {
    std::vector<std::pair<int, Buffer>> received;
    for (int peer : kGroup) {
        if (peer != transport.rank()) received.emplace_back(peer, transport.receive(peer, channel));
    }
    transport.finish_sends();
    for (const auto& [peer, message] : received) {
        const uint64_t value = value_between(peer, transport.rank());
        EXPECT_EQ(number_of(message), value);
        EXPECT_EQ(message.bytes().size(), sizeof(value)) << "without what the transport added";
        EXPECT_EQ(message.part().num_bytes, 1 + value);
        EXPECT_TRUE(is_filled_with(message.part(), value));
    }
}

TEST(LinkTransport, RanksExchangeMessagesInOneOperationOfTheirLink) {
    RecordedLinks recorded;
    const Channel next{6, kExchange.microbatch, Direction::Replicas};
    const std::string error = run(3, kGroupLink, recorded, [&](LinkTransport& transport) {
        transport.exchange(all_to_all(transport.rank(), kExchange));
        transport.exchange(all_to_all(transport.rank(), next));
        take_all(transport, kExchange);
        take_all(transport, next);
    });
    EXPECT_EQ(error, "");
    EXPECT_EQ(recorded.num_links(), 1);
    EXPECT_EQ(recorded.num_done(), 3 * 6) << "one byte each way at the start, and two messages";
    EXPECT_EQ(recorded.most_under_way(), 2);
}

// As for two messages that cross: the bytes know their channel, the parts only their turn.
TEST(LinkTransport, ExchangesThatCrossAreABug) {
    RecordedLinks recorded;
    const Channel next{6, kExchange.microbatch, Direction::Replicas};
    const std::string error = run(3, kGroupLink, recorded, [&](LinkTransport& transport) {
        const bool is_other = transport.rank() == 1;
        for (const Channel& channel : {is_other ? next : kExchange, is_other ? kExchange : next}) {
            transport.exchange(all_to_all(transport.rank(), channel));
        }
        take_all(transport, kExchange);
        take_all(transport, next);
    });
    EXPECT_CONTAINS(error, " of the link 0 between replicas on ranks 2, 0, 1 and is received as message ");
}

TEST(LinkTransport, AnExchangeOfWhichARankSendsOrReceivesNothing) {
    RecordedLinks recorded;
    const std::string error = run(3, kGroupLink, recorded, [&](LinkTransport& transport) {
        Exchange from_first{kGroup, kExchange, std::vector<Buffer>(3), std::vector<MessageSize>(3)};
        const bool is_first = transport.rank() == kGroup[0];
        for (size_t i = 1; is_first && i < 3; ++i) from_first.sent[i] = linked_message(3, memory_of(4));
        if (!is_first) from_first.expected[0] = {sizeof(uint64_t), sizeof(uint64_t)};
        transport.exchange(std::move(from_first));
        const Buffer message = is_first ? Buffer() : transport.receive(kGroup[0], kExchange);
        transport.finish_sends();
        EXPECT_TRUE(is_first || is_filled_with(message.part(), 4));
    });
    EXPECT_EQ(error, "");
}

// Each of three ranks passes a value on over a link of its own between giving its part of an exchange and taking what
// came: cards that waited for the exchange at once would wait in a circle.
TEST(LinkTransport, NothingWaitsForAnExchangeBeforeItIsTaken) {
    const auto circle = [](bool takes_first) {
        RecordedLinks recorded;
        std::vector<Link> links = kGroupLink;
        for (int rank = 0; rank < 3; ++rank) links.push_back({{rank, (rank + 1) % 3}});
        return run(3, links, recorded, [&](LinkTransport& transport) {
            const int next = (transport.rank() + 1) % 3, previous = (transport.rank() + 2) % 3;
            const bool passes_first = transport.rank() == 0;  // the others exchange behind what they receive
            if (!passes_first) transport.post_receive(previous, kForward, kCapacityBytes);
            if (!passes_first) transport.receive(previous, kForward);
            transport.exchange(all_to_all(transport.rank(), kExchange));
            if (takes_first) take_all(transport, kExchange);
            if (next != 0) transport.send(next, kForward, linked_message(1, memory_of(1)));
            if (!takes_first) take_all(transport, kExchange);
        });
    };
    EXPECT_EQ(circle(/*takes_first=*/false), "");
    EXPECT_CONTAINS(circle(/*takes_first=*/true), "no rank can go on");
}

// Rank 2 gives its part of the exchange only behind a value that rank 0 sends when it has taken what rank 1 sent it.
TEST(LinkTransport, ADeviceWaitsForAnExchangeWhenAllRanksAreThere) {
    RecordedLinks recorded;
    std::vector<Link> links = kGroupLink;
    links.push_back({{0, 2}});
    const std::string error = run(3, links, recorded, [&](LinkTransport& transport) {
        if (transport.rank() == 2) {
            transport.post_receive(0, kForward, kCapacityBytes);
            transport.receive(0, kForward);
        }
        transport.exchange(all_to_all(transport.rank(), kExchange));
        if (transport.rank() != 0) return take_all(transport, kExchange);
        transport.receive(1, kExchange);
        transport.send(2, kForward, linked_message(1, memory_of(1)));
        transport.receive(2, kExchange);
        transport.finish_sends();
    });
    EXPECT_EQ(error, "");
}

TEST(LinkTransport, APartOfAnotherSizeThanExpectedIsSaid) {
    RecordedLinks recorded;
    const std::string error = run(3, kGroupLink, recorded, [&](LinkTransport& transport) {
        Exchange exchange = all_to_all(transport.rank(), kExchange);
        if (transport.rank() == 1) exchange.sent[0].set_part({});
        transport.exchange(std::move(exchange));
        take_all(transport, kExchange);
    });
    EXPECT_CONTAINS(error,
                    "message 5 between replicas from rank 1 has another size than it must have (got 0 bytes, expected "
                    "13)");
}

TEST(LinkTransport, OtherMessagesOfReplicasGoPastTheLinks) {
    RecordedLinks recorded;
    const Channel state{5, 3, Direction::Replicas};
    const std::string error = run(3, kGroupLink, recorded, [&](LinkTransport& transport) {
        if (transport.rank() == 0) transport.send(1, state, linked_message(3));
        if (transport.rank() != 1) return;
        transport.post_receive(0, state, sizeof(uint64_t));
        EXPECT_EQ(number_of(transport.receive(0, state)), 3U);
    });
    EXPECT_EQ(error, "");
}

/// The links are made to stand still behind the first byte, or to fail.
void send_over_stuck_link(LinkTransport& transport) {
    transport.set_position("the step");
    send_one(transport, kForward, 2048);
}

TEST(LinkTransport, AWaitForACardEndsInAReportAndAnAbort) {
    RecordedLinks recorded({.stuck_after = 2});
    const std::string error = run(2, kBothWays, recorded, send_over_stuck_link);
    EXPECT_CONTAINS(error, "no rank can go on");
    EXPECT_CONTAINS(error, "rank 0 (the step) has waited");
    EXPECT_CONTAINS(error, "for rank 1 to take forward edge 3, microbatch 2 (2.0 KiB)");
    EXPECT_CONTAINS(error, "for rank 0 to send forward edge 3, microbatch 2 (at most 2.0 KiB)");
    EXPECT_EQ(recorded.num_aborted(), 4) << "both ends of both links";
}

TEST(LinkTransport, AConnectionThatIsNotMadeIsReportedWithItsLink) {
    RecordedLinks recorded({.stuck_after = 1});
    const std::string error = run(2, kBothWays, recorded, [](LinkTransport&) { FAIL() << "it is connected"; });
    EXPECT_CONTAINS(error, "rank 0 (connecting the link from rank 1 to rank 0) has waited");
    EXPECT_EQ(recorded.num_aborted(), 4);
}

TEST(LinkTransport, AFailureOfTheLibraryEndsTheRunInItsWords) {
    RecordedLinks recorded({.stuck_after = 2, .failure = "the cable is out"});
    const std::string error = run(2, kBothWays, recorded, send_over_stuck_link);
    EXPECT_TRUE(error.starts_with("the link from rank 0 to rank 1 has failed: ") ||
                error.starts_with("the link from rank 1 to rank 0 has failed: "))
        << error;
    EXPECT_TRUE(error.ends_with(": the cable is out")) << error;
    EXPECT_EQ(recorded.num_aborted(), 4);
}

TEST(LinkTransport, AllLinksOfARankEndAtOnceAndDropWhatIsUnderWay) {
    for (bool is_idle : {true, false}) {
        RecordedLinks recorded;
        run(2, kBothWays, recorded, [&](LinkTransport& transport) {
            if (transport.rank() == 0 && !is_idle) transport.send(1, kForward, linked_message(1, memory_of(1)));
        });
        EXPECT_EQ(recorded.num_at_once(), 2) << "once a rank";
        EXPECT_EQ(recorded.num_aborted(), 4) << "both ends of both links";
    }
}

/// What the watchdog of rank 0 says where that ends a link, or lets go of one that has ended, in so many seconds.
std::string said_of_an_end(double abort_seconds, double last_seconds) {
    double now = 0;
    std::string said;
    const auto note = [&](const std::string& text, int) { said += text; };
    Watchdog watchdog({.on_fatal = note, .now = [&] { return now; }, .period_seconds = 0});
    RecordedLinks recorded({.on_end = [&](int rank, bool is_abort) {
        if (rank != 0) return;
        for (const double end = now + (is_abort ? abort_seconds : last_seconds); now < end; now += 0.1) watchdog.look();
    }});
    InProcessWorld({.num_ranks = 2}).run([&](Transport& bytes) {
        WatchedTransport watched(bytes, watchdog);
        const auto maker = recorded.maker(bytes.rank());
        LinkTransport transport(bytes.rank() == 0 ? watched : bytes, kBothWays, *maker, /*patience_seconds=*/0);
    });
    return said;
}

/// What the watchdog says, and with which code, where links do not end behind an error of who computes.
std::string said_of_an_error(const std::exception& error) {
    double now = 0;
    std::string said;
    const auto note = [&](const std::string& text, int code) { said += std::to_string(code) + " " + text; };
    Watchdog watchdog({.on_fatal = note, .now = [&] { return now; }, .period_seconds = 0});
    RecordedLinks recorded({.on_end = [&](int rank, bool) {
        if (rank != 0) return;
        for (const double end = now + 6; now < end; now += 0.1) watchdog.look();
    }});
    InProcessWorld({.num_ranks = 2}).run([&](Transport& bytes) {
        WatchedTransport watched(bytes, watchdog);
        const auto maker = recorded.maker(bytes.rank());
        LinkTransport transport(bytes.rank() == 0 ? watched : bytes, kBothWays, *maker, /*patience_seconds=*/0);
        if (bytes.rank() == 0) transport.give_up(error);
    });
    return said;
}

TEST(LinkTransport, AnErrorIsToldWithItsCodeThoughLinksDoNotEnd) {
    EXPECT_EQ(said_of_an_error(Error(ErrorKind::BadData, "sample 3 is damaged")), "65 sample 3 is damaged");
    EXPECT_EQ(said_of_an_error(std::runtime_error("a surprise")), "70 a surprise");
}

TEST(LinkTransport, TheEndOfIdleLinksIsWatchedUntilTheyAreGone) {
    const std::string text = "the links between cards do not end";
    EXPECT_EQ(said_of_an_end(/*abort_seconds=*/20, /*last_seconds=*/0), text) << "two of them";
    EXPECT_EQ(said_of_an_end(0, 20), text);
    EXPECT_EQ(said_of_an_end(5, 5), "");
}

}  // namespace
}  // namespace vpp
