#include "device/memory_meter.hpp"

#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>

#include "base/live_bytes.hpp"

namespace vpp {

namespace {

c10::CachingDeviceAllocator::DeviceStats stats_of(at::Device device) {
    return c10::getDeviceAllocator(device.type())->getDeviceStats(device.index());
}

/// Of small and large blocks together.
c10::CachingAllocator::Stat whole(const c10::CachingAllocator::StatArray& stats) {
    return stats[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
}

c10::CachingAllocator::Stat bytes_of(at::Device device) {
    return whole(stats_of(device).allocated_bytes);
}

/// Alive or for later.
int64_t kept_bytes(at::Device device) {
    return whole(stats_of(device).reserved_bytes).current;
}

}  // namespace

int64_t MemoryMeter::now() const {
    return device_.is_cpu() ? live_bytes::now() : bytes_of(device_).current;
}

int64_t MemoryMeter::peak() const {
    return device_.is_cpu() ? live_bytes::peak() : bytes_of(device_).peak;
}

void MemoryMeter::restart_peak() const {
    if (device_.is_cpu()) return live_bytes::restart_peak();
    c10::getDeviceAllocator(device_.type())->resetPeakStats(device_.index());
}

int64_t MemoryMeter::failed_requests() const {
    return device_.is_cpu() ? 0 : stats_of(device_).num_ooms;
}

int64_t MemoryMeter::flushes() const {
    return device_.is_cpu() ? 0 : stats_of(device_).num_alloc_retries;
}

int64_t MemoryMeter::taken() const {
    if (device_.is_cpu()) return 0;
    const int64_t pinned = device_.is_cuda() ? at::getHostAllocator(device_.type())->get_stats().num_host_alloc : 0;
    return stats_of(device_).num_device_alloc + pinned;
}

int64_t MemoryMeter::free_bytes() const {
    const auto [free, all] = c10::getDeviceAllocator(device_.type())->getMemoryInfo(device_.index());
    return static_cast<int64_t>(free);
}

bool MemoryMeter::is_nearly_full(int64_t taken_soon_bytes) const {
    if (!device_.is_cuda()) return false;                           // others do not say what they have
    constexpr size_t kShare = 32, kLeastBytes = size_t{128} << 20;  // some of the pieces that LibTorch asks for
    const auto [free, all] = c10::getDeviceAllocator(device_.type())->getMemoryInfo(device_.index());
    return free < std::max(all / kShare, kLeastBytes) + static_cast<size_t>(taken_soon_bytes);
}

int64_t give_back_memory(at::Device device) {
    if (device.is_cpu()) return 0;
    const int64_t before = kept_bytes(device);
    c10::getDeviceAllocator(device.type())->emptyCache();
    return before - kept_bytes(device);
}

}  // namespace vpp
