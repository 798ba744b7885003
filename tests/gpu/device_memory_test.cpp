// Memory of a card that MPI moves: when it may be read, and when it is given again, seen with a compute stream that is
// held back. Skipped where there is no card.
#include <ATen/ops/full.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "device/cards.hpp"
#include "device/device.hpp"
#include "device/stream_memory.hpp"
#include "device/upload.hpp"
#include "gpu/streams.hpp"
#include "stage/torch_device_memory.hpp"

namespace vpp {
namespace {

using test::HeldStream, test::LateCopy;

constexpr size_t kTakenBytes = 4096;

class CardMemory : public ::testing::Test {
  protected:
    void SetUp() override {
        if (cuda_cards().empty()) GTEST_SKIP() << "there is no card";
        start_device({at::kCUDA, 0});
        c10::cuda::setCurrentCUDAStream(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, 0));
        memory_ = make_device_memory({at::kCUDA, 0});
        staged_ = make_staged_memory({at::kCUDA, 0});
        test::PinnedBlock::prepare(4);
        const auto pinned = at::full({kTakenBytes}, 0, at::TensorOptions(at::kByte).pinned_memory(true));
    }

    static c10::cuda::CUDAStream stream() { return c10::cuda::getCurrentCUDAStream(0); }

    /// As a transport's thread does it.
    MemoryPart take_elsewhere() {
        MemoryPart taken;
        std::jthread([&] {
            memory_->enter();
            taken = memory_->take(kTakenBytes);
        }).join();
        return taken;
    }

    /// Whether the next ones that are taken together are somewhere else.
    bool is_left_alone(const void* address) {
        std::vector<MemoryPart> taken;
        for (int i = 0; i < 6; ++i) taken.push_back(take_elsewhere());
        return std::none_of(taken.begin(), taken.end(), [&](const auto& part) { return part.data.get() == address; });
    }

    static bool comes(const std::function<bool()>& holds) {
        for (int i = 0; i < 2000; ++i) {
            if (holds()) return true;
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        return false;
    }

    static bool is_filled_soon(const DeviceMemory::Outgoing& sent) {
        return comes([&] { return sent.filled_bytes() == sent.memory.num_bytes; });
    }

    /// Memory of the card with that value, as the stream computes it.
    static MemoryPart computed(int value) {
        const std::shared_ptr<std::byte> memory = stream_memory(stream(), stream(), kTakenBytes);
        check(cudaMemsetAsync(memory.get(), value, kTakenBytes, stream()) == cudaSuccess, "a card fills");
        return {memory, kTakenBytes, true};
    }
    static test::Values all(int value) { return test::Values(kTakenBytes, static_cast<unsigned char>(value)); }
    static test::Values values_of(const MemoryPart& host) {
        const auto* bytes = reinterpret_cast<const unsigned char*>(host.data.get());
        return {bytes, bytes + host.num_bytes};
    }

    std::unique_ptr<DeviceMemory> memory_, staged_;
};

TEST_F(CardMemory, WhatIsSentIsFilledWhenTheStreamIsThere) {
    for (DeviceMemory* memory : {memory_.get(), staged_.get()}) {
        HeldStream held(stream());
        const DeviceMemory::Outgoing sent = memory->send(computed(5));
        EXPECT_EQ(sent.filled_bytes(), 0U);
        std::jthread([&] { EXPECT_EQ(sent.filled_bytes(), 0U); }).join();
        held.let_go();
        EXPECT_TRUE(is_filled_soon(sent));
    }
}

TEST_F(CardMemory, AStagedCopyHasWhatWasComputedAndTheStreamDoesNotWaitForIt) {
    HeldStream held(stream());
    MemoryPart part = computed(5);
    const DeviceMemory::Outgoing sent = staged_->send(part);
    const void* const address = part.data.get();
    part = {};
    const MemoryPart next = computed(6);
    EXPECT_NE(next.data.get(), address) << "it is kept until it is copied";
    held.let_go();
    ASSERT_TRUE(is_filled_soon(sent));
    EXPECT_EQ(values_of(sent.memory), all(5));
}

TEST_F(CardMemory, PiecesOfAStagedCopyAreWhereTheyWere) {
    const size_t piece_bytes = staged_->piece_bytes(), num_bytes = 2 * piece_bytes + 1000;
    const std::shared_ptr<std::byte> memory = stream_memory(stream(), stream(), num_bytes);
    test::Values expected(num_bytes, 1);
    std::fill(expected.begin() + static_cast<int64_t>(piece_bytes), expected.end(), 2);
    std::fill(expected.end() - 1000, expected.end(), 3);
    check(cudaMemcpyAsync(memory.get(), expected.data(), num_bytes, cudaMemcpyHostToDevice, stream()) == cudaSuccess,
          "a card copies");
    const DeviceMemory::Outgoing sent = staged_->send({memory, num_bytes, true});
    ASSERT_TRUE(is_filled_soon(sent));
    EXPECT_TRUE(values_of(sent.memory) == expected);

    const auto delivery = staged_->deliver(sent.memory);
    for (const size_t come_bytes : {piece_bytes, piece_bytes, num_bytes - 1000}) delivery->advance(come_bytes);
    const MemoryPart part = delivery->finish();
    test::Values found(num_bytes);
    check(cudaMemcpyAsync(found.data(), part.data.get(), num_bytes, cudaMemcpyDeviceToHost, stream()) == cudaSuccess,
          "a card copies");
    stream().synchronize();
    EXPECT_TRUE(found == expected);
}

TEST_F(CardMemory, WhatIsDeliveredIsThereForTheStreamAndNotBeforeIt) {
    for (int value = 1; value < 8; ++value) {
        MemoryPart taken = staged_->take(kTakenBytes);
        std::fill_n(taken.data.get(), kTakenBytes, static_cast<std::byte>(value));
        const MemoryPart part = staged_->deliver(std::move(taken))->finish();
        LateCopy found(part, stream());
        EXPECT_EQ(found.wait(), all(value));
    }
}

TEST_F(CardMemory, DeliveredMemoryThatTheStreamStillReadsReceivesNothing) {
    const auto deliver = [&](int value) {
        MemoryPart taken = staged_->take(kTakenBytes);
        std::fill_n(taken.data.get(), kTakenBytes, static_cast<std::byte>(value));
        return staged_->deliver(std::move(taken))->finish();
    };
    MemoryPart first = deliver(1);
    stream().synchronize();
    HeldStream held(stream());
    LateCopy found(first, stream());
    first = {};
    for (int value = 2; value < 8; ++value) deliver(value);
    held.let_go();
    EXPECT_EQ(found.wait(), all(1));
}

TEST_F(CardMemory, WhatTheStreamStillReadsIsNotGivenAgain) {
    MemoryPart first = take_elsewhere();
    EXPECT_TRUE(first.is_on_device);
    EXPECT_EQ(first.num_bytes, kTakenBytes);
    const void* const address = first.data.get();
    HeldStream held(stream());
    LateCopy read(first, stream());
    first = {};
    EXPECT_TRUE(is_left_alone(address));
    held.let_go();
    read.wait();
    EXPECT_TRUE(comes([&] { return !is_left_alone(address); }));
}

TEST_F(CardMemory, WhatTheStreamHasLetGoButStillReadsIsNotGiven) {
    c10::DataPtr own = c10::cuda::CUDACachingAllocator::get()->allocate(kTakenBytes);
    const MemoryPart part{std::shared_ptr<std::byte>(static_cast<std::byte*>(own.get()), [](std::byte*) {}),
                          kTakenBytes, true};
    HeldStream held(stream());
    LateCopy read(part, stream());
    own = {};
    EXPECT_TRUE(is_left_alone(part.data.get()));
    held.let_go();
    read.wait();
}

TEST_F(CardMemory, AnUploadWaitsForNothingAndHasWhatTheHostHadThen) {
    HeldStream held(stream());
    at::Tensor host = at::full({1000}, 5, at::kInt);
    const at::Tensor there = upload(host, {at::kCUDA, 0});
    host.fill_(6);
    held.let_go();
    EXPECT_TRUE(there.eq(5).all().item<bool>());
}

}  // namespace
}  // namespace vpp
