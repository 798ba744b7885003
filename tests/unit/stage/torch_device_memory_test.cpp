#include "stage/torch_device_memory.hpp"

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <thread>

#include "device/device.hpp"
#include "stage/message.hpp"
#include "support/far_device.hpp"

namespace vpp {
namespace {

// When memory may be read, and when it is given again: tests/gpu/device_memory_test.cpp.
TEST(TorchDeviceMemory, AnyThreadMovesWhatTheDeviceHasComputed) {
    const at::Device device = test::test_device();
    if (!device.is_cuda()) GTEST_SKIP() << "needs a card, or a soft one";
    start_device(device);
    for (const bool is_staged : {false, true}) {
        const auto memory = is_staged ? make_staged_memory(device) : make_device_memory(device);
        const at::Tensor computed = at::ones({1000}, device).add(1);
        const DeviceMemory::Outgoing sent = memory->send(part_of(computed, computed.nbytes()));
        EXPECT_EQ(sent.memory.is_on_device, !is_staged);
        EXPECT_EQ(sent.memory.data.get() == computed.const_data_ptr(), !is_staged);
        MemoryPart taken;
        std::jthread([&] {
            memory->enter();
            while (sent.filled_bytes() < sent.memory.num_bytes) std::this_thread::yield();
            taken = memory->take(3000);
        }).join();
        EXPECT_NE(taken.data, nullptr);
        EXPECT_EQ(taken.num_bytes, 3000U);
        EXPECT_EQ(taken.is_on_device, !is_staged);
        const MemoryPart delivered = memory->deliver(taken)->finish();
        EXPECT_TRUE(delivered.is_on_device);
        EXPECT_EQ(delivered.num_bytes, 3000U);
        EXPECT_EQ(delivered.data == taken.data, !is_staged);
    }
}

}  // namespace
}  // namespace vpp
