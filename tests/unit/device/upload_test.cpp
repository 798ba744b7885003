#include "device/upload.hpp"

#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include "device/device.hpp"
#include "support/far_device.hpp"

namespace vpp::test {
namespace {

// That nobody waits: tests/gpu/device_memory_test.cpp.
TEST(Upload, KeepsValuesTypesAndLayout) {
    const at::Device device = device_beside_cpu();
    start_device(device);
    const at::Tensor columns = at::arange(12, at::kLong).reshape({3, 4}).t(), none = at::arange(0);
    for (const at::Tensor& tensor : {columns, none}) {
        const at::Tensor there = upload(tensor, device);
        EXPECT_EQ(there.device(), device);
        EXPECT_EQ(there.strides(), tensor.strides());
        EXPECT_TRUE(there.cpu().equal(tensor));
    }
}

}  // namespace
}  // namespace vpp::test
