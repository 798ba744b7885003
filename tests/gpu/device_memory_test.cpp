// Memory of a card that MPI moves: when it may be read, and when it is given again, seen with a compute stream that is
// held back. Skipped where there is no card.
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
        for (int i = 0; i < 2000 && !holds(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
        return holds();
    }

    std::unique_ptr<DeviceMemory> memory_;
};

TEST_F(CardMemory, AMarkIsReachedWhenTheStreamIsThere) {
    HeldStream held(stream());
    const std::function<bool()> is_reached = memory_->mark();
    EXPECT_FALSE(is_reached());
    std::jthread([&] { EXPECT_FALSE(is_reached()); }).join();
    held.let_go();
    EXPECT_TRUE(comes(is_reached));
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

}  // namespace
}  // namespace vpp
