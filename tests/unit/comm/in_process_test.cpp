#include "comm/in_process.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <regex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"

namespace vpp {
namespace {

Buffer message_of(int value, size_t num_bytes = sizeof(int)) {
    Buffer buffer(num_bytes);
    std::memcpy(buffer.bytes().data(), &value, sizeof(value));
    return buffer;
}

int value_of(const Buffer& buffer) {
    int value = 0;
    std::memcpy(&value, buffer.bytes().data(), sizeof(value));
    return value;
}

Channel forward(int edge, int microbatch = 0) {
    return {edge, microbatch, Direction::Forward};
}

std::string error_of(InProcessWorld world, const std::function<void(Transport&)>& body,
                     ErrorKind kind = ErrorKind::RankLost) {
    try {
        world.run(body);
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), kind);
        return error.what();
    }
    return "no error";
}

TEST(InProcess, MessagesOfOneChannelKeepTheirOrder) {
    for (uint64_t seed = 0; seed < 50; ++seed) {
        InProcessWorld({.num_ranks = 2, .seed = seed, .delay_probability = 0.7}).run([](Transport& transport) {
            const int peer = 1 - transport.rank();
            for (int i = 0; i < 20; ++i) transport.send(peer, forward(1), message_of(i));
            for (int i = 0; i < 20; ++i) {
                transport.post_receive(peer, forward(1), sizeof(int));
                EXPECT_EQ(value_of(transport.receive(peer, forward(1))), i);
            }
            transport.finish_sends();
        });
    }
}

/// Threads wait for the processor too.
std::string with_short_waits(const std::string& text) {
    return std::regex_replace(text, std::regex("has waited [0-9.]+ s"), "has waited 0.0 s");
}

/// Rank 0 polls nothing: it takes 8 channels in a fixed order while the others' order of running is seeded.
std::string interleaving(uint64_t seed, double delay_probability) {
    std::string order;
    InProcessWorld({.num_ranks = 4, .seed = seed, .delay_probability = delay_probability})
        .run([&](Transport& transport) {
            const int next = (transport.rank() + 1) % 4;
            const int before = (transport.rank() + 3) % 4;
            for (int i = 0; i < 8; ++i) {
                order += static_cast<char>('0' + transport.rank());
                transport.post_receive(before, forward(i), sizeof(int));
                transport.send(next, forward(i), message_of(i));
                transport.receive(before, forward(i));
            }
        });
    return order;
}

TEST(InProcess, TheSeedDecidesTheInterleaving) {
    std::set<std::string> orders;
    for (uint64_t seed = 0; seed < 20; ++seed) {
        EXPECT_EQ(interleaving(seed, 0.3), interleaving(seed, 0.3)) << seed;
        orders.insert(interleaving(seed, 0.3));
    }
    EXPECT_GT(orders.size(), 15u);
    EXPECT_NE(interleaving(1, 0), interleaving(1, 0.9));
}

TEST(InProcess, OnlyOneRankComputesAtATime) {
    std::atomic<int> computing = 0;
    InProcessWorld({.num_ranks = 4, .seed = 3, .delay_probability = 0.3}).run([&](Transport& transport) {
        for (int i = 0; i < 10; ++i) {
            const int peer = (transport.rank() + 1) % 4;
            const int before = (transport.rank() + 3) % 4;
            EXPECT_EQ(++computing, 1);
            transport.post_receive(before, forward(0, i), sizeof(int));
            transport.send(peer, forward(0, i), message_of(i));
            std::this_thread::sleep_for(std::chrono::microseconds(50));
            --computing;
            transport.receive(before, forward(0, i));
        }
    });
}

TEST(InProcess, AReceiverOwnsItsBytes) {
    InProcessWorld({.num_ranks = 2}).run([](Transport& transport) {
        transport.post_receive(1 - transport.rank(), forward(0), 64);
        Buffer sent = message_of(7, 64);
        transport.send(1 - transport.rank(), forward(0), sent);
        Buffer received = transport.receive(1 - transport.rank(), forward(0));
        received.bytes()[0] = std::byte{99};
        EXPECT_EQ(value_of(sent), 7);
        transport.finish_sends();
    });
}

TEST(InProcess, APartComesBehindTheBytes) {
    InProcessWorld({.num_ranks = 2}).run([](Transport& transport) {
        transport.post_receive(1 - transport.rank(), forward(0), 72);
        Buffer sent = message_of(7, 64), lies_elsewhere = message_of(8, 8);
        sent.set_part({lies_elsewhere.owner(), 8});
        transport.send(1 - transport.rank(), forward(0), sent);
        Buffer received = transport.receive(1 - transport.rank(), forward(0));
        ASSERT_EQ(received.bytes().size(), 72u);
        received.bytes()[64] = std::byte{99};
        EXPECT_EQ(value_of(received), 7);
        EXPECT_EQ(value_of(lies_elsewhere), 8);
        transport.finish_sends();
    });
}

TEST(InProcess, ADeadlockIsFoundAtOnceAndNamesEveryRank) {
    const auto start = std::chrono::steady_clock::now();
    const std::string text = error_of(InProcessWorld({.num_ranks = 3}), [](Transport& transport) {
        const int rank = transport.rank();
        transport.set_position("stage " + std::to_string(rank) + ", RECV_F of microbatch 0");
        if (rank == 2) return;
        transport.post_receive(1 - rank, forward(rank + 4), 2048);
        transport.receive(1 - rank, forward(rank + 4));
    });
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
    EXPECT_EQ(with_short_waits(text),
              "no rank can go on; rank 0 (stage 0, RECV_F of microbatch 0) has waited 0.0 s for rank 1 to send forward "
              "edge 4, microbatch 0 (at most 2.0 KiB); rank 1 (stage 1, RECV_F of microbatch 0) has waited 0.0 s for "
              "rank 0 to send forward edge 5, microbatch 0 (at most 2.0 KiB); rank 2 (stage 2, RECV_F of microbatch 0) "
              "has ended");
}

TEST(InProcess, LateMessagesAreNoDeadlock) {
    InProcessWorld({.num_ranks = 2, .delay_probability = 1, .max_delay_handovers = 1000}).run([](Transport& transport) {
        transport.post_receive(1 - transport.rank(), forward(0), 64);
        transport.send(1 - transport.rank(), forward(0), message_of(1));
        transport.receive(1 - transport.rank(), forward(0));
    });
}

TEST(InProcess, ASendIsGoneOnlyWhenItsReceiveIsPosted) {
    const auto send_before_posting = [](Transport& transport) {
        const int peer = 1 - transport.rank();
        transport.send(peer, forward(0), message_of(1));
        transport.finish_sends();
        transport.post_receive(peer, forward(0), 64);
        transport.receive(peer, forward(0));
    };
    const std::string text = error_of(InProcessWorld({.num_ranks = 2}), send_before_posting);
    EXPECT_NE(with_short_waits(text).find(
                  "rank 0 (start) has waited 0.0 s for rank 1 to take forward edge 0, microbatch 0 (4 B)"),
              std::string::npos)
        << text;
    InProcessWorld({.num_ranks = 2, .overlap = false}).run(send_before_posting);
}

TEST(InProcess, TheFirstErrorWinsAndWakesTheOthers) {
    std::atomic<int> woken = 0;
    const auto body = [&](Transport& transport) {
        const int rank = transport.rank();
        transport.set_position("stage " + std::to_string(rank));
        if (rank == 1) throw Error(ErrorKind::NotFinite, "loss is nan");
        try {
            transport.post_receive(1, forward(0), 64);
            transport.receive(1, forward(0));
        } catch (const Error& error) {
            EXPECT_STREQ(error.what(),
                         ("rank " + std::to_string(rank) + " ends because rank 1 (stage 1) failed").c_str());
            ++woken;
            throw;
        }
    };
    EXPECT_EQ(error_of(InProcessWorld({.num_ranks = 3}), body, ErrorKind::NotFinite), "loss is nan");
    EXPECT_EQ(woken, 2);
}

TEST(InProcess, RefusesWhatDoesNotFit) {
    EXPECT_NE(error_of(
                  InProcessWorld({.num_ranks = 2}),
                  [](Transport& transport) {
                      if (transport.rank() == 0) return transport.send(1, forward(0), Buffer(65));
                      transport.post_receive(0, forward(0), 64);
                      transport.receive(0, forward(0));
                  },
                  ErrorKind::RanksDisagree)
                  .find("got 65 bytes, expected at most 64"),
              std::string::npos);
    EXPECT_NE(error_of(
                  InProcessWorld({.num_ranks = 1}), [](Transport& transport) { transport.receive(0, forward(0)); },
                  ErrorKind::Bug)
                  .find("was never posted"),
              std::string::npos);
    EXPECT_NE(error_of(
                  InProcessWorld({.num_ranks = 1}),
                  [](Transport& transport) { transport.send(1, forward(0), Buffer(1)); }, ErrorKind::Bug)
                  .find("peer is a rank"),
              std::string::npos);
}

TEST(InProcess, ARankThatKeepsTheBatonPastTheDeadlineIsNamed) {
    const std::string text = error_of(InProcessWorld({.num_ranks = 2, .seed = 5}), [](Transport& transport) {
        transport.set_deadline(0.2);
        transport.set_position("stage " + std::to_string(transport.rank()));
        transport.post_receive(1 - transport.rank(), forward(0), 64);
        transport.send(1 - transport.rank(), forward(0), message_of(1));
        transport.finish_sends();
        if (transport.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(1000));
        transport.receive(1 - transport.rank(), forward(0));
        transport.post_receive(1 - transport.rank(), forward(1), 64);
        transport.send(1 - transport.rank(), forward(1), message_of(1));
        transport.receive(1 - transport.rank(), forward(1));
    });
    EXPECT_NE(text.find("; rank 1 (stage 1) has computed for"), std::string::npos) << text;
}

TEST(InProcess, CountsWaitingTime) {
    InProcessWorld({.num_ranks = 2}).run([](Transport& transport) {
        transport.post_receive(1 - transport.rank(), forward(0), 64);
        if (transport.rank() == 0) {
            transport.receive(1, forward(0));
            std::this_thread::sleep_for(std::chrono::milliseconds(200));
            transport.send(1, forward(0), message_of(1));
            return;
        }
        transport.send(0, forward(0), message_of(1));  // it is about to wait
        transport.take_wait_seconds();
        transport.receive(0, forward(0));
        const double seconds = transport.take_wait_seconds();
        EXPECT_TRUE(seconds > 0.02 && seconds < 5) << seconds;
        EXPECT_EQ(transport.take_wait_seconds(), 0);
    });
}

}  // namespace
}  // namespace vpp
