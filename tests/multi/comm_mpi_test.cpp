// The MPI transport under a real mpirun, with any number of ranks from 2 on. Every rank runs every test, in this order.
#include <gtest/gtest.h>
#include <mpi.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/random.hpp"
#include "comm/collective.hpp"
#include "comm/mpi_session.hpp"
#include "comm/mpi_transport.hpp"
#include "multi/comm_ranks.hpp"

namespace vpp {
namespace {

using namespace ranks;

size_t size_of(int sender, int receiver, int number, size_t max_bytes) {
    const uint64_t key = combine_key(static_cast<uint64_t>(sender * 64 + receiver), static_cast<uint64_t>(number));
    // Half of the sizes are small, so that messages inside and behind their envelope mix.
    const size_t bound = key % 2 == 0 ? max_bytes : std::min<size_t>(max_bytes, 4096);
    return static_cast<size_t>((key >> 8) % (bound + 1));
}

/// Every rank sends `count` messages of random sizes to every rank, each posts and takes in an order of its own.
void all_pairs(const MpiTransportOptions& options, int count, size_t max_bytes) {
    MpiTransport transport(*session, options);
    const int rank = transport.rank();
    struct Item {
        int peer;
        int number;
    };
    std::vector<Item> items;
    for (int peer = 0; peer < transport.size(); ++peer) {
        for (int number = 0; number < count; ++number) {
            if (peer != rank) items.push_back({peer, number});
        }
    }
    std::mt19937_64 shuffle(static_cast<uint64_t>(rank) + 7);
    std::vector<Item> takes = items;
    std::shuffle(items.begin(), items.end(), shuffle);
    std::shuffle(takes.begin(), takes.end(), shuffle);
    const auto post = [&](const Item& item) {
        transport.post_receive(item.peer, forward(item.number % 7, item.number), max_bytes);
    };
    for (size_t i = 0; i < takes.size() / 2; ++i) post(takes[i]);
    for (const Item& item : items) {
        const size_t num_bytes = size_of(rank, item.peer, item.number, max_bytes);
        Buffer message = content_of(rank, item.peer, item.number, num_bytes);
        if (item.number % 2 == 0) message = parted(std::move(message), std::min<size_t>(num_bytes, 192));
        transport.send(item.peer, forward(item.number % 7, item.number), std::move(message));
    }
    for (size_t i = takes.size() / 2; i < takes.size(); ++i) post(takes[i]);
    for (const Item& item : takes) {
        const Buffer got = transport.receive(item.peer, forward(item.number % 7, item.number));
        const size_t num_bytes = size_of(item.peer, rank, item.number, max_bytes);
        const Buffer expected = content_of(item.peer, rank, item.number, num_bytes);
        ASSERT_EQ(got.bytes().size(), num_bytes);
        ASSERT_EQ(hash_bytes(got.bytes()), hash_bytes(expected.bytes())) << item.peer << ' ' << item.number;
    }
    transport.finish_sends();
    barrier(transport);
}

TEST(MpiTransport, AllPairsRandomSizes) {
    all_pairs({}, 40, 300000);
}
TEST(MpiTransport, AllPairsInPieces) {
    all_pairs({.piece_bytes = 1000}, 20, 100000);
}
TEST(MpiTransport, AllPairsWithoutOverlap) {
    all_pairs({.overlap = false}, 20, 300000);
}

TEST(MpiTransport, PiecesOfExactlyTheirSize) {
    MpiTransport transport(*session, {.piece_bytes = 4096});
    const int peer = transport.rank() ^ 1;
    for (const size_t num_bytes : {0, 1, 2048, 2049, 4095, 4096, 4097, 8192, 12289}) {
        transport.post_receive(peer, forward(1), num_bytes);
        transport.send(peer, forward(1), content_of(transport.rank(), peer, 1, num_bytes));
        const Buffer got = transport.receive(peer, forward(1));
        const Buffer expected = content_of(peer, transport.rank(), 1, num_bytes);
        EXPECT_EQ(hash_bytes(got.bytes()), hash_bytes(expected.bytes())) << num_bytes;
    }
    transport.finish_sends();
    barrier(transport);
}

TEST(MpiTransport, PartsGoFromWhereTheyLieAndComeBehindTheBytes) {
    MpiTransport transport(*session, {.piece_bytes = 4096});
    const int peer = transport.rank() ^ 1;
    for (const size_t begin_bytes : {0, 1, 64, 2047, 2048, 2049, 5000}) {
        for (const size_t part_bytes : {0, 1, 1984, 2047, 2048, 4096, 4097, 12289}) {
            const size_t num_bytes = begin_bytes + part_bytes;
            transport.post_receive(peer, forward(1), num_bytes);
            Buffer sent = parted(content_of(transport.rank(), peer, 1, num_bytes), begin_bytes);
            const std::weak_ptr<std::byte> part = sent.part().data;
            transport.send(peer, forward(1), std::move(sent));
            const Buffer got = transport.receive(peer, forward(1));
            const Buffer expected = content_of(peer, transport.rank(), 1, num_bytes);
            ASSERT_EQ(got.bytes().size(), num_bytes);
            EXPECT_EQ(hash_bytes(got.bytes()), hash_bytes(expected.bytes())) << begin_bytes << " + " << part_bytes;
            transport.finish_sends();
            EXPECT_TRUE(part.expired()) << "it has gone";
        }
    }
    barrier(transport);
}

// What is written while it is under way may arrive: the part is not copied. (Such messages wait for their receiver.)
TEST(MpiTransport, APartIsReadWhenItGoes) {
    MpiTransport transport(*session);
    const int peer = transport.rank() ^ 1;
    constexpr size_t kBytes = 1 << 20;
    Buffer memory(kBytes);
    std::fill(memory.bytes().begin(), memory.bytes().end(), std::byte{1});
    Buffer message(64);
    message.set_part({memory.owner(), kBytes});
    transport.send(peer, forward(1), std::move(message));
    memory.bytes()[kBytes - 1] = std::byte{2};
    barrier(transport);
    transport.post_receive(peer, forward(1), kBytes + 64);
    EXPECT_EQ(transport.receive(peer, forward(1)).bytes().back(), std::byte{2});
    transport.finish_sends();
    barrier(transport);
}

TEST(MpiTransport, RefusesPartsOnDevices) {
    MpiTransport transport(*session);
    Buffer message(64);
    message.set_part({Buffer(64).owner(), 64, true});
    EXPECT_THROW(transport.send(transport.rank() ^ 1, forward(1), message), Error);
    barrier(transport);
}

class MpiTransportOfDevices : public ::testing::TestWithParam<bool> {};

TEST_P(MpiTransportOfDevices, PartsGoFromDeviceToDeviceWhenTheyAreComputed) {
    constexpr size_t kPartBytes = 20000;
    for (const size_t begin_bytes : {0, 192, 5000}) {
        MpiTransport transport(*session, {.piece_bytes = 4096});
        EXPECT_FALSE(transport.carries_device_memory());
        const auto num_computed = std::make_shared<std::atomic<int>>(0);
        transport.carry(std::make_unique<SlowDevice>(num_computed, GetParam()));
        EXPECT_TRUE(transport.carries_device_memory());
        barrier(transport);  // all of them do
        const int peer = transport.rank() ^ 1;
        const size_t num_bytes = begin_bytes + kPartBytes;
        const Buffer early = content_of(transport.rank(), peer, 1, num_bytes);
        for (int number : {1, 2}) transport.post_receive(peer, forward(number), num_bytes);
        transport.post_receive(peer, forward(3), 100);
        transport.send(peer, forward(1), on_device(early, begin_bytes));
        transport.send(peer, forward(2), on_device(content_of(transport.rank(), peer, 2, num_bytes), begin_bytes));
        transport.send(peer, forward(3), Buffer(100));  // waits for no device
        transport.receive(peer, forward(3));
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        EXPECT_FALSE(transport.has_arrived(peer, forward(1)));
        barrier(transport);
        std::copy_n(content_of(transport.rank(), peer, 7, num_bytes).bytes().begin(), num_bytes, early.owner().get());
        *num_computed = 1;
        const Buffer first = transport.receive(peer, forward(1));
        EXPECT_EQ(first.bytes().size(), begin_bytes);
        ASSERT_TRUE(first.part().is_on_device);
        const Buffer expected = content_of(peer, transport.rank(), 7, num_bytes);
        const auto tail = [&](const Buffer& whole) { return hash_bytes(whole.bytes().subspan(begin_bytes)); };
        EXPECT_EQ(tail(in_one_piece(first)), tail(expected)) << "what was computed last";
        EXPECT_FALSE(transport.has_arrived(peer, forward(2)));
        barrier(transport);
        *num_computed = 2;
        const Buffer second = transport.receive(peer, forward(2));
        EXPECT_EQ(hash_bytes(in_one_piece(second).bytes()),
                  hash_bytes(content_of(peer, transport.rank(), 2, num_bytes).bytes()));
        transport.finish_sends();
        barrier(transport);
    }
}

INSTANTIATE_TEST_SUITE_P(DirectAndStaged, MpiTransportOfDevices, ::testing::Bool());

/// Computes a piece only when the peer's device has got the one before it.
class AlternatingDevice : public SlowDevice {
  public:
    explicit AlternatingDevice(int peer) : SlowDevice(std::make_shared<std::atomic<int>>(1), true), peer_(peer) {}
    Outgoing send(MemoryPart part) override {
        const size_t num_bytes = part.num_bytes;
        return {SlowDevice::send(std::move(part)).memory, [this, num_bytes] {
                    int has_come = 0;
                    MPI_Iprobe(peer_, kTag, MPI_COMM_WORLD, &has_come, MPI_STATUS_IGNORE);
                    if (has_come != 0) {
                        take_word(peer_);
                        ++num_pieces_;
                    }
                    return std::min(num_pieces_ * piece_bytes(), num_bytes);
                }};
    }
    std::unique_ptr<Delivery> deliver(MemoryPart) override { return std::make_unique<Told>(peer_); }
    static void take_word(int peer) { MPI_Recv(nullptr, 0, MPI_BYTE, peer, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }

  private:
    static constexpr int kTag = 7;

    class Told : public Delivery {
      public:
        explicit Told(int peer) : peer_(peer) {}
        void advance(size_t num_bytes) override {
            if (num_bytes > std::exchange(told_bytes_, num_bytes))
                MPI_Send(nullptr, 0, MPI_BYTE, peer_, kTag, MPI_COMM_WORLD);
        }
        MemoryPart finish() override { return {Buffer(told_bytes_).owner(), told_bytes_, true}; }

      private:
        int peer_;
        size_t told_bytes_ = 0;
    };

    int peer_;
    size_t num_pieces_ = 1;
};

TEST(MpiTransport, APieceOfAPartIsDeliveredBeforeTheNextIsComputed) {
    MpiTransport transport(*session);
    transport.set_deadline(20);
    const int peer = transport.rank() ^ 1;
    transport.carry(std::make_unique<AlternatingDevice>(peer));
    barrier(transport);  // all of them do
    constexpr size_t kPartBytes = 10000;
    transport.post_receive(peer, forward(1), kPartBytes);
    transport.send(peer, forward(1), on_device(Buffer(kPartBytes), 0));
    EXPECT_EQ(transport.receive(peer, forward(1)).part().num_bytes, kPartBytes);
    transport.finish_sends();
    barrier(transport);
    const std::lock_guard lock(session->mutex());
    AlternatingDevice::take_word(peer);  // of the last piece
}

TEST(MpiTransport, OneChannelKeepsItsOrderWhateverTheSizes) {
    MpiTransport transport(*session);
    const int peer = transport.rank() ^ 1;
    constexpr int kCount = 30;
    for (int i = 0; i < kCount; ++i) {
        transport.send(peer, forward(1), content_of(transport.rank(), peer, i, i % 2 == 0 ? 50000 : 5));
    }
    for (int i = 0; i < kCount; ++i) transport.post_receive(peer, forward(1), 50000);
    for (int i = 0; i < kCount; ++i) {
        const Buffer got = transport.receive(peer, forward(1));
        const Buffer expected = content_of(peer, transport.rank(), i, i % 2 == 0 ? 50000 : 5);
        EXPECT_EQ(hash_bytes(got.bytes()), hash_bytes(expected.bytes())) << i;
    }
    transport.finish_sends();
    barrier(transport);
}

TEST(MpiTransport, LargeMessagesMoveWhileBothSidesCompute) {
    MpiTransport transport(*session);
    const int peer = transport.rank() ^ 1;
    constexpr size_t kBytes = 8 << 20;
    barrier(transport);
    transport.post_receive(peer, forward(1), kBytes);
    transport.send(peer, forward(1), content_of(transport.rank(), peer, 1, kBytes));
    std::this_thread::sleep_for(std::chrono::milliseconds(1000));
    transport.take_wait_seconds();
    const Buffer got = transport.receive(peer, forward(1));
    EXPECT_LT(transport.take_wait_seconds(), 0.2) << "the message came only when it was waited for";
    EXPECT_EQ(got.bytes().size(), kBytes);
    transport.finish_sends();
    barrier(transport);
}

TEST(MpiTransport, CountsWaitingTime) {
    MpiTransport transport(*session);
    barrier(transport);
    const int peer = transport.rank() ^ 1;
    if (transport.rank() % 2 == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
        transport.send(peer, forward(1), content_of(transport.rank(), peer, 1, 8));
    } else {
        transport.post_receive(peer, forward(1), 8);
        transport.take_wait_seconds();
        transport.receive(peer, forward(1));
        const double seconds = transport.take_wait_seconds();
        EXPECT_TRUE(seconds > 0.1 && seconds < 5) << seconds;
        EXPECT_EQ(transport.take_wait_seconds(), 0);
    }
    barrier(transport);
}

TEST(MpiTransport, WithoutOverlapASendHasGoneBeforeItReturns) {
    MpiTransport transport(*session, {.overlap = false});
    const int peer = transport.rank() ^ 1;
    constexpr size_t kBytes = 4 << 20;
    transport.send(peer, forward(1), content_of(transport.rank(), peer, 1, kBytes));  // nobody has posted
    transport.take_wait_seconds();
    transport.finish_sends();
    EXPECT_EQ(transport.take_wait_seconds(), 0);
    transport.post_receive(peer, forward(1), kBytes);
    EXPECT_EQ(transport.receive(peer, forward(1)).bytes().size(), kBytes);
    barrier(transport);
}

TEST(MpiTransport, TooLongForItsReceiveIsSaidWithBothSizes) {
    MpiTransport transport(*session);
    if (transport.rank() == 0) transport.send(1, forward(3, 2), Buffer(100));
    if (transport.rank() == 1) {
        transport.post_receive(0, forward(3, 2), 99);
        try {
            transport.receive(0, forward(3, 2));
            ADD_FAILURE() << "not noticed";
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::RanksDisagree);
            EXPECT_STREQ(error.what(),
                         "rank 0 sent forward edge 3, microbatch 2 with a size that rank 1 does not "
                         "expect (got 100 bytes, expected at most 99)");
        }
    }
    barrier(transport);
}

TEST(MpiTransport, NobodySendsIsSaidAtTheDeadline) {
    MpiTransport transport(*session);
    barrier(transport);
    if (transport.rank() == 1) {
        transport.set_deadline(1.5);
        transport.set_position("stage 1, RECV_F of microbatch 2");
        transport.post_receive(0, forward(3, 2), 4096);
        const auto start = std::chrono::steady_clock::now();
        try {
            transport.receive(0, forward(3, 2));
            ADD_FAILURE() << "no error";
        } catch (const Error& error) {
            const std::string text = error.what();
            EXPECT_EQ(error.kind(), ErrorKind::RankLost);
            EXPECT_TRUE(text.starts_with("rank 1 (stage 1, RECV_F of microbatch 2) has waited 1.")) << text;
            EXPECT_NE(
                text.find("for rank 0 to send forward edge 3, microbatch 2 (at most 4.0 KiB); every rank answers"),
                std::string::npos)
                << text;
            EXPECT_NE(text.find("rank 0 (stage 0, F of microbatch 5) has computed for"), std::string::npos) << text;
            EXPECT_TRUE(text.ends_with("nobody here expects: forward edge 9, microbatch 1")) << text;
        }
        const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
        EXPECT_GE(seconds.count(), 1.5);
        EXPECT_LT(seconds.count(), 3.5);
        transport.post_receive(0, forward(9, 1), 4);
        transport.receive(0, forward(9, 1));
    } else {
        transport.set_position("stage 0, F of microbatch 5");
        if (transport.rank() == 0) transport.send(1, forward(9, 1), Buffer(4));
        std::this_thread::sleep_for(std::chrono::milliseconds(3500));
    }
    transport.set_deadline(60);
    barrier(transport);
}

// As links between cards wait: for what MPI knows nothing of.
TEST(MpiTransport, AWaitForSomethingElseHasTheDeadlineToo) {
    MpiTransport transport(*session);
    barrier(transport);
    const Wait what{Wait::Kind::Receive, 0, forward(3, 2), 4096, 0};
    int asked = 0;
    transport.wait_until(what, [&] { return ++asked == 50; });
    EXPECT_EQ(asked, 50);
    EXPECT_THROW(transport.wait_until(what, []() -> bool { throw Error(ErrorKind::RankLost, "the cable is out"); }),
                 Error);
    if (transport.rank() == 1) {
        transport.set_deadline(1.2);
        transport.set_position("stage 1, RECV_F of microbatch 2");
        try {
            transport.wait_until(what, [] { return false; });
            ADD_FAILURE() << "no error";
        } catch (const Error& error) {
            const std::string text = error.what();
            EXPECT_TRUE(text.starts_with("rank 1 (stage 1, RECV_F of microbatch 2) has waited 1.")) << text;
            EXPECT_NE(
                text.find("for rank 0 to send forward edge 3, microbatch 2 (at most 4.0 KiB); every rank answers"),
                std::string::npos)
                << text;
        }
    } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(3000));
    }
    transport.set_deadline(60);
    barrier(transport);
}

TEST(MpiTransport, CollectivesOverMpi) {
    MpiTransport transport(*session);
    for (int round = 0; round < 20; ++round) {
        const auto size = static_cast<size_t>(round * 1000 + transport.rank());
        const auto all = all_gather(transport, Bytes(size, static_cast<std::byte>(transport.rank())));
        for (size_t rank = 0; rank < all.size(); ++rank) {
            EXPECT_EQ(all[rank], Bytes(static_cast<size_t>(round) * 1000 + rank, static_cast<std::byte>(rank)));
        }
    }
    EXPECT_THROW(check_equal(transport, "digest", transport.rank() == 0 ? "a" : "b"), Error);
    barrier(transport);
}

TEST(MpiSession, KnowsItsPlace) {
    EXPECT_EQ(session->local_size(), session->size());
    EXPECT_LT(session->local_rank(), session->local_size());
    EXPECT_GE(session->local_cores(), 1);
    EXPECT_NE(mpi_library_version().find("MPI"), std::string::npos);
}

}  // namespace
}  // namespace vpp

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    vpp::MpiSession mpi;
    vpp::ranks::session = &mpi;
    if (mpi.rank() > 0) GTEST_FLAG_SET(brief, true);
    const int result = RUN_ALL_TESTS();
    if (result != 0) mpi.abort(result);
    return result;
}
