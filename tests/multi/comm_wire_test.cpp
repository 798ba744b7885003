// The wire under a real mpirun: what it does with tags that run out and with thousands of sends.
#include "comm/mpi_wire.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "comm/collective.hpp"
#include "comm/mpi_transport.hpp"
#include "multi/comm_ranks.hpp"

namespace {

std::atomic<int> num_looks = 0;  // how often MPI was asked for one send or receive

}  // namespace

/// In front of the library's own.
extern "C" int MPI_Test(MPI_Request* request, int* done, MPI_Status* status) {
    ++num_looks;
    return PMPI_Test(request, done, status);
}

namespace vpp {
namespace {

using namespace ranks;

/// A wire between the ranks of a test, which moves messages only when it is told so.
class BareWire {
  public:
    explicit BareWire(const detail::MpiWireOptions& options) {
        const std::lock_guard lock(session->mutex());
        wire_ = std::make_unique<detail::MpiWire>(*session, options);
        while (!wire_->start()) continue;
    }
    ~BareWire() {
        const std::lock_guard lock(session->mutex());
        wire_.reset();
    }
    /// One call of the wire's, as its users make them.
    template <typename Call>
    auto ask(const Call& call) {
        const std::lock_guard lock(session->mutex());
        return call(*wire_);
    }
    void send(int number, Buffer message) {
        ask([&](detail::MpiWire& wire) { wire.send(peer(), forward(number), std::move(message)); });
    }
    void post(int number) {
        ask([&](detail::MpiWire& wire) { wire.post(peer(), forward(number), 1 << 20); });
    }
    /// Moves messages until `done`, in at most 60 s.
    template <typename Done>
    bool move_until(const Done& done) {
        const auto start = std::chrono::steady_clock::now();
        while (!ask([&](detail::MpiWire& wire) { return wire.progress(), done(wire); })) {
            if (std::chrono::steady_clock::now() - start > std::chrono::seconds(60)) return false;
            std::this_thread::yield();
        }
        return true;
    }
    Buffer receive(int number) {
        const auto has_come = [&](detail::MpiWire& wire) { return wire.has_arrived(peer(), forward(number)); };
        if (!move_until(has_come)) return Buffer(0);
        return ask([&](detail::MpiWire& wire) { return *wire.take(peer(), forward(number)); });
    }
    static int peer() { return session->rank() ^ 1; }

  private:
    std::unique_ptr<detail::MpiWire> wire_;
};

Buffer sent_by(int sender, int number) {
    return content_of(sender, sender ^ 1, number, 5000);
}

bool is_sent_by_peer(const Buffer& got, int number) {
    const Buffer whole = in_one_piece(got);
    return hash_bytes(whole.bytes()) == hash_bytes(sent_by(BareWire::peer(), number).bytes());
}

bool all_sent(detail::MpiWire& wire) {
    return !wire.oldest_send();
}

// More are under way than MPI has tags, and the oldest are waited for last.
TEST(MpiWire, ContentsOfOneTagAreNotTakenForEachOther) {
    constexpr int kCount = 10;
    MpiTransport transport(*session);
    BareWire wire({.num_tags = 4});
    for (int number = 0; number < kCount; ++number) wire.send(number, sent_by(session->rank(), number));
    for (int number = kCount; number-- > 0;) {
        wire.post(number);
        EXPECT_TRUE(is_sent_by_peer(wire.receive(number), number)) << number;
    }
    EXPECT_TRUE(wire.move_until(all_sent));
    barrier(transport);
}

// A tag comes round again while the first content that has it waits for its device.
TEST(MpiWire, ContentsGoBehindThatOfTheirTagWhichWaitsForItsDevice) {
    MpiTransport transport(*session);
    BareWire wire({.num_tags = 4});
    const auto num_computed = std::make_shared<std::atomic<int>>(0);
    SlowDevice device(num_computed, false);
    wire.ask([&](detail::MpiWire& bare) { bare.use(device); });
    for (int number = 0; number < 10; ++number) {
        const Buffer whole = sent_by(session->rank(), number);
        wire.send(number, number % 4 == 0 ? on_device(whole, 2500) : whole);
        wire.post(number);
    }
    for (int number : {9, 7, 6, 5, 3, 2, 1}) EXPECT_TRUE(is_sent_by_peer(wire.receive(number), number)) << number;
    barrier(transport);
    *num_computed = 3;
    for (int number : {8, 4, 0}) EXPECT_TRUE(is_sent_by_peer(wire.receive(number), number)) << number;
    EXPECT_TRUE(wire.move_until(all_sent));
    barrier(transport);
}

// Those that wait for their receiver cost nothing while others go; and each is seen to have gone.
TEST(MpiWire, ALookAsksForSomeOfThousandsOfSends) {
    constexpr int kCount = 2000;
    MpiTransport transport(*session);
    BareWire wire({.num_tags = 1 << 15});
    for (int number = 0; number < kCount; ++number) wire.send(number, sent_by(session->rank(), number));
    barrier(transport);
    wire.move_until([](detail::MpiWire& bare) { return !bare.progress(); });
    const int before = num_looks;
    constexpr int kLooks = 100;
    for (int look = 0; look < kLooks; ++look) wire.ask([](detail::MpiWire& bare) { return bare.progress(); });
    EXPECT_LT(num_looks - before, kLooks * 40);
    for (int number = 0; number < kCount; ++number) wire.post(number);
    for (int number = kCount; number-- > 0;) EXPECT_TRUE(is_sent_by_peer(wire.receive(number), number)) << number;
    EXPECT_TRUE(wire.move_until(all_sent));
    barrier(transport);
}

}  // namespace
}  // namespace vpp
