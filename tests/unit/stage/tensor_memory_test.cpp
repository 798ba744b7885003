#include "stage/tensor_memory.hpp"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/live_bytes.hpp"
#include "comm/transport.hpp"
#include "device/memory_meter.hpp"
#include "support/far_device.hpp"

namespace vpp {
namespace {

TEST(TensorMemory, ATensorCountsFromItsMakingToItsLastView) {
    give_back_memory(test::test_device());  // a soft card that still works for a test before takes the host's
    count_tensor_memory();
    count_tensor_memory();
    constexpr int64_t kBytes = 1 << 20;
    const int64_t before = live_bytes::now();
    at::Tensor tensor = at::empty({kBytes / 4});
    const int64_t taken = live_bytes::now() - before;
    EXPECT_GE(taken, kBytes);
    EXPECT_LT(taken, kBytes + (1 << 13)) << "once, and the heap's rounding";
    at::Tensor view = tensor.slice(0, 0, 1);
    tensor.reset();
    EXPECT_EQ(live_bytes::now() - before, taken) << "the view keeps it";
    std::jthread([&] { view.reset(); }).join();
    EXPECT_EQ(live_bytes::now(), before);
}

TEST(TensorMemory, WhatIsNeverFilledCountsForNothing) {
    count_tensor_memory();
    const int64_t before = live_bytes::now();
    at::Tensor unfilled, other_threads;
    {
        const live_bytes::Unfilled scope;
        unfilled = at::empty({1 << 20});
        std::jthread([&] { other_threads = at::empty({1 << 10}); }).join();
    }
    EXPECT_GE(live_bytes::now() - before, 1 << 12);
    EXPECT_LT(live_bytes::now() - before, 1 << 14) << "the other thread's alone";
    other_threads.reset();
    unfilled.reset();
    EXPECT_EQ(live_bytes::now(), before);
}

TEST(TensorMemory, MessagesCountToo) {
    const int64_t before = live_bytes::now();
    {
        const Buffer message(1000), same = message;
        EXPECT_EQ(live_bytes::now() - before, 1024) << "whole lines of 64 bytes, once";
    }
    EXPECT_EQ(live_bytes::now(), before);
}

}  // namespace
}  // namespace vpp
