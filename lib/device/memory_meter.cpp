#include "device/memory_meter.hpp"

#include <c10/core/CachingDeviceAllocator.h>

#include "base/live_bytes.hpp"

namespace vpp {

namespace {

c10::CachingAllocator::Stat bytes_of(at::Device device) {
    const auto all = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    return c10::getDeviceAllocator(device.type())->getDeviceStats(device.index()).allocated_bytes[all];
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

}  // namespace vpp
