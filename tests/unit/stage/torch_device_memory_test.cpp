#include "stage/torch_device_memory.hpp"

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <thread>

#include "device/device.hpp"
#include "support/far_device.hpp"

namespace vpp {
namespace {

// When memory may be read, and when it is given again: tests/gpu/device_memory_test.cpp.
TEST(TorchDeviceMemory, GivesMemoryToAnyThreadAndMarksWhatIsComputed) {
    const at::Device device = test::test_device();
    if (!device.is_cuda()) GTEST_SKIP() << "needs a card, or a soft one";
    start_device(device);
    const auto memory = make_device_memory(device);
    const at::Tensor computed = at::ones({1000}, device).add(1);
    const auto is_computed = memory->mark();
    std::jthread([&] {
        memory->enter();
        while (!is_computed()) std::this_thread::yield();
        const MemoryPart part = memory->take(3000);
        EXPECT_NE(part.data, nullptr);
        EXPECT_EQ(part.num_bytes, 3000U);
        EXPECT_TRUE(part.is_on_device);
    }).join();
}

}  // namespace
}  // namespace vpp
