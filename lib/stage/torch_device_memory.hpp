#pragma once
// The memory of LibTorch's allocator for a device, for a transport that moves it from other threads and outside of the
// device's streams.
#include <c10/core/Device.h>

#include <memory>

#include "comm/device_memory.hpp"

namespace vpp {

/// Requires: a device that is not the CPU, started (device/device.hpp); the calling thread computes on it.
std::unique_ptr<DeviceMemory> make_device_memory(at::Device device);

}  // namespace vpp
