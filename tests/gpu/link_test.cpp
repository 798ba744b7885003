// Links of NCCL between two cards of one process: what is sent when, where it is received, and when memory is given
// again, seen with a compute stream that is held back. Skipped where there are not two cards.
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "base/clock_alignment.hpp"
#include "base/error.hpp"
#include "comm/link_room.hpp"
#include "comm/nccl.hpp"
#include "device/cards.hpp"
#include "device/device.hpp"
#include "gpu/streams.hpp"

namespace vpp {
namespace {

using test::HeldStream, test::LateCopy, test::Values;

constexpr size_t kBytes = 4096;

class NcclLink : public ::testing::Test {
  protected:
    void SetUp() override {
        if (cuda_cards().size() < 2) GTEST_SKIP() << "NCCL needs two cards";
        for (int card : {1, 0}) {
            const auto index = static_cast<c10::DeviceIndex>(card);
            start_device({at::kCUDA, index});
            // Not the default one, which is that of the card that the thread is at.
            c10::cuda::setCurrentCUDAStream(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, index));
        }
        connect();
    }

    /// A new link from card 0 to card 1.
    void connect() {
        const Bytes id = makers_[0]->make_id();
        for (int card : {0, 1}) {
            const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(card));
            ends_[card] = makers_[card]->connect(id, card, 2);
        }
        for (const auto& end : ends_) wait_until([&] { return end->is_ready(); });
        num_passed_ = num_received_ = 0;
    }

    LinkEnd& sender() { return *ends_[0]; }
    LinkEnd& receiver() { return *ends_[1]; }
    static c10::cuda::CUDAStream stream(int card) {
        return c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(card));
    }

    MemoryPart memory(int card, int value) {
        MemoryPart made = makers_[card]->make_memory(kBytes);
        fill(made, value, card);
        return made;
    }
    static void fill(const MemoryPart& memory, int value, int card) {
        check(cudaMemsetAsync(memory.data.get(), value, memory.num_bytes, stream(card)) == cudaSuccess, "a card fills");
    }

    void send(MemoryPart memory) {
        sender().move({{}, std::move(memory)}, {0, 0});
        wait_until([&] { return sender().is_ready(); });
    }
    MemoryPart receive() {
        MemoryPart memory = receiver().move({{}, {}}, {kBytes, 0})[0];
        wait_until([&] { return receiver().is_ready(); });
        receiver().deliver(num_received_++);
        return memory;
    }
    /// A message with that value from card 0 to card 1.
    MemoryPart pass(int value) {
        send(memory(0, value));
        MemoryPart came = receive();
        wait_until([&] { return receiver().num_done() == num_passed_ + 1; });
        ++num_passed_;
        return came;
    }

    static Values values_of(const MemoryPart& memory, int card) { return LateCopy(memory, stream(card)).wait(); }
    static Values all(int value) { return Values(kBytes, static_cast<unsigned char>(value)); }

    static void wait_until(const std::function<bool()>& holds) {
        constexpr std::chrono::seconds kMost(30);
        const auto start = std::chrono::steady_clock::now();
        while (!holds()) {
            check(std::chrono::steady_clock::now() - start < kMost, "a link goes on");
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        }
    }
    static void wait_a_little() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

    std::unique_ptr<LinkMaker> makers_[2]{make_nccl_links(0, kMostLinks), make_nccl_links(1, kMostLinks)};
    std::unique_ptr<LinkEnd> ends_[2];
    int64_t num_passed_ = 0, num_received_ = 0;
};

TEST_F(NcclLink, SendsWhatTheStreamWasGivenToCompute) {
    HeldStream held(stream(0));
    const MemoryPart computed = memory(0, 7);
    send(computed);
    const MemoryPart came = receive();
    wait_a_little();
    EXPECT_EQ(sender().num_done(), 0) << "it is not yet computed";
    held.let_go();
    EXPECT_EQ(values_of(came, 1), all(7));
}

TEST_F(NcclLink, TheReceiversStreamFindsWhatCame) {
    const MemoryPart came = receive();
    LateCopy found(came, stream(1));
    wait_a_little();
    send(memory(0, 9));
    EXPECT_EQ(found.wait(), all(9));
    EXPECT_EQ(receiver().num_done(), 1);
}

TEST_F(NcclLink, MemoryThatAStreamStillReadsReceivesNothing) {
    MemoryPart first = pass(1);
    HeldStream held(stream(1));
    LateCopy found(first, stream(1));
    first = {};
    for (int value = 2; value < 8; ++value) pass(value);
    held.let_go();
    EXPECT_EQ(found.wait(), all(1));
}

TEST_F(NcclLink, MemoryThatAStreamHasLetGoButStillReadsReceivesNothing) {
    MemoryPart own = memory(1, 1);
    HeldStream held(stream(1));
    LateCopy found(own, stream(1));
    own = {};
    for (int value = 2; value < 8; ++value) pass(value);
    held.let_go();
    EXPECT_EQ(found.wait(), all(1));
}

TEST_F(NcclLink, KeepsWhatItSendsUntilItHasGone) {
    send(memory(0, 3));
    for (int value = 4; value < 10; ++value) memory(0, value);
    EXPECT_EQ(values_of(receive(), 1), all(3));
}

TEST_F(NcclLink, HoldsNothingOfWhatHasGone) {
    MemoryPart sent = memory(0, 3);
    const std::weak_ptr<std::byte> held = sent.data;
    send(std::move(sent));
    EXPECT_FALSE(held.expired());
    MemoryPart came = receive();
    const std::weak_ptr<std::byte> received = came.data;
    came = {};
    EXPECT_TRUE(received.expired()) << "it is the caller's alone";
    wait_until([&] { return sender().num_done() == 1; });
    EXPECT_TRUE(held.expired());
}

TEST_F(NcclLink, OperationsEndInTheirOrder) {
    std::vector<MemoryPart> came;
    for (int value = 1; value <= 5; ++value) {
        send(memory(0, value));
        came.push_back(receive());
    }
    wait_until([&] { return sender().num_done() == 5 && receiver().num_done() == 5; });
    for (int value = 1; value <= 5; ++value) EXPECT_EQ(values_of(came[static_cast<size_t>(value - 1)], 1), all(value));
}

TEST_F(NcclLink, AnExchangeGoesBothWaysAtOnceAndHoldsNoStreamBeforeItIsDelivered) {
    MemoryPart came[2];
    const auto exchange = [&](int card) {
        std::vector<MemoryPart> sent(2);
        std::vector<size_t> received_bytes(2);
        const auto other = static_cast<size_t>(1 - card);
        sent[other] = memory(card, 5 + card);
        received_bytes[other] = kBytes;
        came[card] = ends_[card]->move(std::move(sent), received_bytes)[other];
        wait_until([&] { return ends_[card]->is_ready(); });
    };
    exchange(1);
    EXPECT_EQ(values_of(memory(1, 9), 1), all(9)) << "card 1 computes on";
    exchange(0);
    for (int card : {0, 1}) {
        ends_[card]->deliver(0);
        EXPECT_EQ(values_of(came[card], card), all(6 - card));
    }
    wait_until([&] { return sender().num_done() == 1 && receiver().num_done() == 1; });
}

TEST_F(NcclLink, WaitsForNoOtherLinkHoweverManyThereAre) {
    send(memory(0, 1));
    const std::unique_ptr<LinkEnd> idle[]{std::move(ends_[0]), std::move(ends_[1])};
    for (int value = 0; value < 40; ++value) {
        connect();
        EXPECT_EQ(values_of(pass(value), 1), all(value));
    }
    EXPECT_EQ(idle[0]->num_done(), 0) << "nobody receives it";
}

TEST_F(NcclLink, AsManyAsARankMayHaveWaitBesideEachOther) {
    struct Both {
        std::unique_ptr<LinkEnd> ends[2];
    };
    std::vector<Both> ways[2];  // by the card that sends
    for (size_t i = 0; i < kMostLinks; ++i) {
        connect();
        ways[i % 2].push_back({{std::move(ends_[0]), std::move(ends_[1])}});
    }
    std::vector<MemoryPart> came;
    const auto give = [&](Both& link, int card, int other, bool sends) {
        std::vector<MemoryPart> sent(2);
        std::vector<size_t> received_bytes(2);
        if (sends) sent[static_cast<size_t>(other)] = memory(card, 7);
        if (!sends) received_bytes[static_cast<size_t>(other)] = kBytes;
        LinkEnd& end = *link.ends[card];
        const std::vector<MemoryPart> received = end.move(std::move(sent), received_bytes);
        if (!sends) came.push_back(received[static_cast<size_t>(other)]);
        wait_until([&] { return end.is_ready(); });
    };
    for (int sender : {0, 1}) {
        for (Both& link : ways[sender]) give(link, 1 - sender, sender, false);
    }
    wait_a_little();
    for (int sender : {0, 1}) {
        for (Both& link : ways[sender]) give(link, sender, 1 - sender, true);
    }
    for (auto& links : ways) {
        for (Both& link : links) {
            wait_until([&] { return link.ends[0]->num_done() == 1 && link.ends[1]->num_done() == 1; });
        }
    }
    for (size_t i = 0; i < came.size(); ++i) EXPECT_EQ(values_of(came[i], i < came.size() / 2 ? 1 : 0), all(7));
}

TEST_F(NcclLink, TimesAreOnTheHostsClock) {
    for (const auto& end : ends_) end->set_timed(true);
    const int64_t before = steady_nanoseconds();
    pass(1);
    wait_until([&] { return sender().num_done() == 1; });
    const int64_t behind = steady_nanoseconds();
    constexpr int64_t kSlack = 500'000'000;  // how late a busy machine may see that an event was reached
    for (const auto& end : ends_) {
        const auto times = end->take_times();
        ASSERT_EQ(times.size(), 1U);
        EXPECT_GT(times[0].first, before - kSlack);
        EXPECT_LE(times[0].first, times[0].second);
        EXPECT_LT(times[0].second, behind + kSlack);
        EXPECT_TRUE(end->take_times().empty());
    }
}

TEST_F(NcclLink, AnAbortEndsWhatNobodySends) {
    receive();
    wait_a_little();
    EXPECT_EQ(receiver().num_done(), 0);
    for (const auto& end : ends_) end->abort();
}

}  // namespace
}  // namespace vpp
