#pragma once
// The memory of a device for a transport that moves it from other threads and outside of the device's streams.
#include <c10/core/Device.h>

#include <memory>

#include "comm/device_memory.hpp"

namespace vpp {

/// The device's own memory, for a library that moves it by itself (CUDA-aware MPI).
/// Requires: a device that is not the CPU, started (device/device.hpp); the calling thread computes on it.
std::unique_ptr<DeviceMemory> make_device_memory(at::Device device);

/// The host's, pinned where the device is a card, for a library that moves only that: the device copies there and from
/// there in a stream for each direction, while it computes.
/// Requires: as above.
std::unique_ptr<DeviceMemory> make_staged_memory(at::Device device);

}  // namespace vpp
