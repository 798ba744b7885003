#pragma once
// A device for tests on machines without one: its memory cannot be read by the CPU (every address is moved to where
// nothing is), its tensors never mix with the CPU's, and it has a generator of its own. Ops compute by LibTorch's CPU
// kernels on copies, so a run has the bits of those kernels. LibTorch knows it as PrivateUse1, index 0.
#include <c10/core/Device.h>

#include <cstdint>

namespace vpp::test {

/// Registers it in this process, once.
at::Device far_device();

/// Where rigs compute: the device that VPP_TEST_DEVICE names ("far", "cuda"), else the CPU.
at::Device test_device();

/// A device that is not the CPU: that one, or the far one. A process in which the far one is registered has no pinned
/// memory for cards, so no test registers it where a card is asked for.
at::Device device_beside_cpu();

/// Copies between host and far memory since the process began.
int64_t num_far_copies();
/// How often its allocator was asked to give back what it keeps.
int64_t num_far_give_backs();

}  // namespace vpp::test
