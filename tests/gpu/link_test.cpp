// Links of NCCL between two ranks: what is sent when, where it is received, and when memory is given again, seen with
// compute streams that are held back.
//   mpirun -np 2 vpp_link_test
//   VPP_PROGRAM=.../vpp_link_test VPP_CARDS=1 mpirun -np 2 own_host.sh
// Skipped where the ranks have not a card each and own_host.sh does not have them on different hosts.
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock_alignment.hpp"
#include "base/error.hpp"
#include "comm/collective.hpp"
#include "comm/link_room.hpp"
#include "comm/mpi_session.hpp"
#include "comm/mpi_transport.hpp"
#include "comm/nccl.hpp"
#include "comm/transport_kinds.hpp"
#include "device/cards.hpp"
#include "device/device.hpp"
#include "gpu/cuda_environment.hpp"
#include "gpu/streams.hpp"

namespace vpp {

namespace {

using test::HeldStream, test::LateCopy, test::Values;

constexpr size_t kBytes = 4096;
constexpr double kMostSeconds = 30;

MpiSession* session = nullptr;

void wait_until(const std::function<bool()>& holds) {
    const auto start = std::chrono::steady_clock::now();
    while (!holds()) {
        const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
        check(waited.count() < kMostSeconds, "a link goes on");
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
}

void wait_a_little() {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

/// A rank's end of a link, which has been used once, since connections are made by their use.
class Way {
  public:
    /// Calls: both ranks.
    Way(Transport& transport, LinkMaker& maker, int sender) : rank_(transport.rank()), sender_(sender) {
        const Bytes id = broadcast(transport, rank_ == 0 ? maker.make_id() : Bytes{});
        end_ = maker.connect(id, rank_, 2);
        wait_until([&] { return end_->is_ready(); });
        give(sends() ? maker.make_memory(kBytes) : MemoryPart{}, !sends());
        finish();
    }

    bool sends() const { return rank_ == sender_; }
    LinkEnd& end() { return *end_; }

    void send(MemoryPart memory) { give(std::move(memory), false); }
    MemoryPart receive() {
        MemoryPart memory = give({}, true);
        end_->deliver(num_given_ - 1);
        return memory;
    }
    /// Memory for what comes, and not delivered: the compute stream does not wait for it.
    MemoryPart give(MemoryPart memory, bool receives) {
        const auto peer = static_cast<size_t>(1 - rank_);
        std::vector<MemoryPart> sent(2);
        std::vector<size_t> received_bytes(2);
        sent[peer] = std::move(memory);
        received_bytes[peer] = receives ? kBytes : 0;
        const std::vector<MemoryPart> received = end_->move(std::move(sent), received_bytes);
        wait_until([&] { return end_->is_ready(); });
        ++num_given_;
        return received[peer];
    }

    void deliver_last() { end_->deliver(num_given_ - 1); }
    int64_t num_under_way() { return num_given_ - end_->num_done(); }
    void finish() {
        wait_until([&] { return num_under_way() == 0; });
    }

  private:
    int rank_, sender_;
    std::unique_ptr<LinkEnd> end_;
    int64_t num_given_ = 0;
};

/// Both ranks run each test; rank 0 sends on `way_`, rank 1 receives.
class NcclLink : public ::testing::Test {
  protected:
    void SetUp() override {
        const bool share_cards = std::getenv(kNcclHostVariable) != nullptr;
        if (session->size() != 2 || cuda_cards().size() < (share_cards ? 1 : 2)) {
            GTEST_SKIP() << "NCCL needs two ranks, and a card for each or own_host.sh";
        }
        const at::Device device = device_of_rank("cuda", session->local_rank(), cuda_cards());
        start_device(device);
        c10::cuda::setCurrentCUDAStream(test::computing_stream(device.index()));
        transport_.emplace(*session);
        transport_->set_deadline(kMostSeconds);
        maker_ = make_nccl_links(device.index(), kMostLinks);
        test::PinnedBlock::prepare(4);
        way_ = connect(0);
    }
    void TearDown() override {
        if (HasFailure()) session->abort(1);  // the other rank would wait for this one in every test behind it
        if (transport_) meet();               // nobody's links end while the other is at work
    }

    std::unique_ptr<Way> connect(int sender) { return std::make_unique<Way>(*transport_, *maker_, sender); }
    int rank() const { return session->rank(); }
    bool sends() const { return way_->sends(); }
    void meet() { barrier(*transport_); }
    static c10::cuda::CUDAStream stream() { return c10::cuda::getCurrentCUDAStream(); }

    MemoryPart memory(int value) {
        MemoryPart made = maker_->make_memory(kBytes);
        check(cudaMemsetAsync(made.data.get(), value, kBytes, stream()) == cudaSuccess, "a card fills");
        return made;
    }
    /// A message with that value; rank 1 has it.
    MemoryPart pass(int value) {
        MemoryPart came;
        if (sends()) {
            way_->send(memory(value));
        } else {
            came = way_->receive();
        }
        way_->finish();
        return came;
    }
    void pass_some_more() {
        for (int value = 2; value < 8; ++value) pass(value);
    }

    static Values values_of(const MemoryPart& memory) { return LateCopy(memory, stream()).wait(); }
    static Values all(int value) { return Values(kBytes, static_cast<unsigned char>(value)); }

    std::optional<MpiTransport> transport_;
    std::unique_ptr<LinkMaker> maker_;
    std::unique_ptr<Way> way_;
};

TEST_F(NcclLink, SendsWhatTheStreamWasGivenToCompute) {
    if (sends()) {
        HeldStream held(stream());
        way_->send(memory(7));
        wait_a_little();
        EXPECT_EQ(way_->num_under_way(), 1) << "it is not yet computed";
    } else {
        EXPECT_EQ(values_of(way_->receive()), all(7));
    }
}

TEST_F(NcclLink, TheReceiversStreamFindsWhatCame) {
    std::optional<LateCopy> found;
    if (!sends()) found.emplace(way_->receive(), stream());
    wait_a_little();
    meet();
    if (sends()) {
        way_->send(memory(9));
    } else {
        EXPECT_EQ(found->wait(), all(9));
        EXPECT_EQ(way_->num_under_way(), 0);
    }
}

TEST_F(NcclLink, MemoryThatAStreamStillReadsReceivesNothing) {
    MemoryPart first = pass(1);
    if (sends()) return pass_some_more();
    HeldStream held(stream());
    LateCopy found(first, stream());
    first = {};
    pass_some_more();
    held.let_go();
    EXPECT_EQ(found.wait(), all(1));
}

TEST_F(NcclLink, MemoryThatAStreamHasLetGoButStillReadsReceivesNothing) {
    if (sends()) return pass_some_more();
    MemoryPart own = memory(1);
    HeldStream held(stream());
    LateCopy found(own, stream());
    own = {};
    pass_some_more();
    held.let_go();
    EXPECT_EQ(found.wait(), all(1));
}

TEST_F(NcclLink, KeepsWhatItSendsUntilItHasGone) {
    if (sends()) {
        way_->send(memory(3));
        for (int value = 4; value < 10; ++value) memory(value);
    }
    meet();
    if (!sends()) {
        EXPECT_EQ(values_of(way_->receive()), all(3));
    }
}

TEST_F(NcclLink, HoldsNothingOfWhatHasGone) {
    std::weak_ptr<std::byte> held;
    if (sends()) {
        MemoryPart sent = memory(3);
        held = sent.data;
        way_->send(std::move(sent));
        EXPECT_FALSE(held.expired());
    } else {
        held = way_->receive().data;
        EXPECT_TRUE(held.expired()) << "it is the caller's alone";
    }
    way_->finish();
    EXPECT_TRUE(held.expired());
}

TEST_F(NcclLink, OperationsEndInTheirOrder) {
    std::vector<MemoryPart> came;
    for (int value = 1; value <= 5; ++value) {
        if (sends()) {
            way_->send(memory(value));
        } else {
            came.push_back(way_->receive());
        }
    }
    way_->finish();
    for (size_t i = 0; i < came.size(); ++i) EXPECT_EQ(values_of(came[i]), all(static_cast<int>(i) + 1));
}

TEST_F(NcclLink, AnExchangeGoesBothWaysAtOnceAndHoldsNoStreamBeforeItIsDelivered) {
    way_->give(memory(0), true);
    way_->finish();
    MemoryPart came;
    if (rank() == 1) {
        came = way_->give(memory(6), true);
        EXPECT_EQ(values_of(memory(9)), all(9)) << "rank 1 computes on";
    }
    meet();
    if (rank() == 0) came = way_->give(memory(5), true);
    way_->deliver_last();
    EXPECT_EQ(values_of(came), all(6 - rank()));
    way_->finish();
}

TEST_F(NcclLink, WaitsForNoOtherLink) {
    constexpr size_t kIdle = 3;  // whose streams would be in one queue with those of the last links
    std::vector<std::unique_ptr<Way>> idle, others;
    idle.push_back(std::move(way_));
    while (idle.size() < kIdle) idle.push_back(connect(0));
    while (others.size() + kIdle < kMostLinks) others.push_back(connect(0));
    const bool is_sender = idle.front()->sends();
    for (auto& way : idle) {
        if (!is_sender) way->give({}, true);
    }
    for (size_t i = 0; i < others.size(); ++i) {
        way_ = std::move(others[i]);
        const MemoryPart came = pass(static_cast<int>(i));
        if (!sends()) {
            EXPECT_EQ(values_of(came), all(static_cast<int>(i)));
        }
        others[i] = std::move(way_);
    }
    for (auto& way : idle) EXPECT_EQ(way->num_under_way(), is_sender ? 0 : 1) << "nobody sends it";
    meet();
    for (auto& way : idle) {
        if (is_sender) way->send(memory(1));
        way->finish();
    }
    meet();
    way_ = std::move(idle.front());
}

TEST_F(NcclLink, AsManyAsARankMayHaveWaitBesideEachOther) {
    std::vector<std::unique_ptr<Way>> ways;
    ways.push_back(std::move(way_));
    while (ways.size() < kMostLinks) ways.push_back(connect(static_cast<int>(ways.size() % 2)));
    std::vector<MemoryPart> came;
    for (auto& way : ways) {
        if (!way->sends()) came.push_back(way->give({}, true));
    }
    wait_a_little();
    EXPECT_EQ(values_of(memory(9)), all(9)) << "what the rank computes stands behind no link";
    meet();
    for (auto& way : ways) {
        if (way->sends()) way->send(memory(7));
    }
    for (auto& way : ways) way->finish();
    EXPECT_EQ(came.size(), (kMostLinks + static_cast<size_t>(rank())) / 2);
    for (const MemoryPart& part : came) EXPECT_EQ(values_of(part), all(7));
    meet();
    way_ = std::move(ways.front());
}

TEST_F(NcclLink, TimesAreOnTheHostsClock) {
    way_->end().set_timed(true);
    const int64_t before = steady_nanoseconds();
    pass(1);
    const int64_t behind = steady_nanoseconds();
    constexpr int64_t kSlack = 500'000'000;  // how late a busy machine may see that an event was reached
    const auto times = way_->end().take_times();
    ASSERT_EQ(times.size(), 1U);
    EXPECT_GT(times[0].first, before - kSlack);
    EXPECT_LE(times[0].first, times[0].second);
    EXPECT_LT(times[0].second, behind + kSlack);
    EXPECT_TRUE(way_->end().take_times().empty());
}

TEST_F(NcclLink, AnAbortEndsWhatNobodySends) {
    if (!sends()) way_->receive();
    wait_a_little();
    EXPECT_EQ(way_->num_under_way(), sends() ? 0 : 1);
    meet();
    way_->end().abort();
}

// Either card waits for what comes before it sends, so nothing does. Aborted one behind the other, the first end would
// wait for the card, and the card for the second.
TEST_F(NcclLink, AbortsAtOnceEndWhatWaitsForEachOther) {
    const std::unique_ptr<Way> back = connect(1);
    Way &out = sends() ? *way_ : *back, &in = sends() ? *back : *way_;
    in.receive();
    out.send(memory(3));
    wait_a_little();
    EXPECT_EQ(in.num_under_way(), 1);
    EXPECT_EQ(out.num_under_way(), 1);
    meet();
    maker_->at_once([&] {
        out.end().abort();
        in.end().abort();
    });
    wait_until([] { return stream().query(); });
    meet();
}

}  // namespace

}  // namespace vpp

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    vpp::test::prepare_cuda_for_links();
    vpp::MpiSession mpi;
    vpp::session = &mpi;
    const int result = RUN_ALL_TESTS();
    if (result != 0) mpi.abort(result);
    return result;
}
