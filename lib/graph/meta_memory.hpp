#pragma once
// What tensors of the meta device would take: they have no bytes, but the sizes of their memory are known, and autograd
// keeps alive what a backward pass will read.
#include <c10/core/Allocator.h>

#include <cstdint>

namespace vpp {

/// Has the meta device tell who watches (MetaMemory) what is made and freed. Once a process is enough.
void report_meta_memory();

/// Watches this thread while it is its c10::DebugInfoKind::PROFILER_STATE.
class MetaMemory final : public c10::MemoryReportingInfoBase {
  public:
    void reportMemoryUsage(void* /*memory*/, int64_t bytes, size_t /*allocated*/, size_t /*reserved*/,
                           c10::Device device) override {
        if (device.is_meta()) alive_bytes_ += bytes;
    }
    bool memoryProfilingEnabled() const override { return false; }  // the CPU's allocator need not take note of its own

    /// Made since then and not freed; less than 0 where what was there before was freed.
    int64_t alive_bytes() const { return alive_bytes_; }

  private:
    int64_t alive_bytes_ = 0;
};

}  // namespace vpp
