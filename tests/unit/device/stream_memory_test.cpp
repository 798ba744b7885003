#include "device/stream_memory.hpp"

#include <ATen/ops/from_blob.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

#include "device/device.hpp"
#include "support/far_device.hpp"

namespace vpp::test {
namespace {

// When it is given again: tests/gpu/device_memory_test.cpp and link_test.cpp.
TEST(StreamMemory, IsOfTheDeviceAndAsLongAsAsked) {
    const at::Device device = device_beside_cpu();
    start_device(device);
    const c10::Stream stream = c10::impl::VirtualGuardImpl(device.type()).getStream(device);
    const std::shared_ptr<std::byte> memory = stream_memory(stream, stream, 3000);
    const auto options = at::TensorOptions(at::kByte).device(device);
    at::Tensor over = at::from_blob(
        memory.get(), {3000}, {1}, [](void*) {}, options, device);
    EXPECT_EQ(over.device(), device);
    EXPECT_EQ(over.fill_(7).sum().item<int64_t>(), 7 * 3000);
}

}  // namespace
}  // namespace vpp::test
