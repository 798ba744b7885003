#include "device/memory_meter.hpp"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include "device/device.hpp"
#include "stage/tensor_memory.hpp"
#include "support/far_device.hpp"

namespace vpp::test {
namespace {

TEST(MemoryMeter, CountsItsOwnDevice) {
    count_tensor_memory();
    start_device(device_beside_cpu());
    constexpr int64_t kBytes = 1 << 20;
    for (const at::Device device : {at::Device(at::kCPU), device_beside_cpu()}) {
        const at::Device other = device.is_cpu() ? device_beside_cpu() : at::Device(at::kCPU);
        const MemoryMeter meter(device);
        meter.restart_peak();
        const int64_t before = meter.now();
        at::Tensor tensor = at::empty({kBytes}, at::TensorOptions().dtype(at::kByte).device(device));
        const at::Tensor elsewhere = at::empty({kBytes}, at::TensorOptions().dtype(at::kByte).device(other));
        const int64_t taken = meter.now() - before;
        EXPECT_GE(taken, kBytes) << device;
        EXPECT_LT(taken, kBytes + (1 << 13)) << device;
        tensor.reset();
        EXPECT_EQ(meter.now(), before) << device;
        EXPECT_EQ(meter.peak() - before, taken) << device;
        meter.restart_peak();
        EXPECT_EQ(meter.peak(), before) << device;
    }
}

TEST(MemoryMeter, RequestsThatFailAreCounted) {
    EXPECT_EQ(MemoryMeter(at::kCPU).failed_requests(), 0);
    if (!test_device().is_cuda()) GTEST_SKIP() << "other devices have no requests that libraries do without";
    start_device(test_device());
    const MemoryMeter meter(test_device());
    const int64_t before = meter.failed_requests(), flushes_before = meter.flushes();
    const auto bytes = at::TensorOptions().dtype(at::kByte).device(test_device());
    const at::Tensor one = at::empty({1}, bytes);
    EXPECT_EQ(meter.failed_requests(), before);
    EXPECT_EQ(meter.flushes(), flushes_before);
    EXPECT_THROW(at::empty({int64_t{1} << 50}, bytes), c10::OutOfMemoryError);
    EXPECT_EQ(meter.failed_requests(), before + 1);
    EXPECT_EQ(meter.flushes(), flushes_before + 1) << "before it was said that there is none";
}

TEST(MemoryMeter, ADeviceWithoutRoomForWhatLibTorchAsksForIsNearlyFull) {
    EXPECT_FALSE(MemoryMeter(at::kCPU).is_nearly_full());
    if (!test_device().is_cuda()) GTEST_SKIP() << "of other devices nothing is known";
    start_device(test_device());
    const MemoryMeter meter(test_device());
    give_back_memory(test_device());
    ASSERT_FALSE(meter.is_nearly_full()) << "a card that is free for tests";
    constexpr int64_t kLeft = int64_t{100} << 20;
    const at::Tensor taken =
        at::empty({meter.free_bytes() - kLeft}, at::TensorOptions().dtype(at::kByte).device(test_device()));
    EXPECT_TRUE(meter.is_nearly_full());
}

TEST(MemoryMeter, FreeBytesAreThoseOfTheDevice) {
    if (!test_device().is_cuda()) GTEST_SKIP() << "of other devices nothing is known";
    start_device(test_device());
    constexpr int64_t kBytes = int64_t{256} << 20;
    const MemoryMeter meter(test_device());
    give_back_memory(test_device());
    const int64_t before = meter.free_bytes();
    const at::Tensor taken = at::empty({kBytes}, at::TensorOptions().dtype(at::kByte).device(test_device()));
    EXPECT_LE(meter.free_bytes(), before - kBytes / 2) << "others may give some back meanwhile";
}

}  // namespace
}  // namespace vpp::test
