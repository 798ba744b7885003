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

}  // namespace
}  // namespace vpp::test
