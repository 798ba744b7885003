#pragma once
// What tensors of the meta device would take: they have no bytes, but the sizes of their memory are known, and autograd
// keeps alive what a backward pass will read.
#include <c10/core/Allocator.h>
#include <c10/core/StorageImpl.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace vpp {

/// Has the meta device tell who watches (MetaMemory) what is made and freed. Once a process is enough.
void report_meta_memory();

/// While it lives nobody is told what this thread makes on the meta device: constants, there once for all microbatches.
class UntoldMetaMemory {
  public:
    UntoldMetaMemory();
    ~UntoldMetaMemory();
    UntoldMetaMemory(const UntoldMetaMemory&) = delete;
    UntoldMetaMemory& operator=(const UntoldMetaMemory&) = delete;

  private:
    bool before_;
};

/// Watches this thread while it is its c10::DebugInfoKind::PROFILER_STATE. What was made before then does not count.
class MetaMemory final : public c10::MemoryReportingInfoBase {
  public:
    explicit MetaMemory(size_t num_ops) : alive_bytes_of_(num_ops) {}

    /// What is made from now on is this op's.
    void begin_op(size_t op) { op_ = op; }
    /// To be told of what an op gives: memory of no bytes may have been given its size behind its making. Gives its
    /// bytes where this op has made it, else 0.
    int64_t note_size(const c10::StorageImpl& memory);

    void reportMemoryUsage(void* memory, int64_t bytes, size_t allocated, size_t reserved, c10::Device device) override;
    bool memoryProfilingEnabled() const override { return false; }  // the CPU's allocator need not take note of its own

    /// Made and not freed.
    int64_t alive_bytes() const { return alive_bytes_; }
    /// Of that what op `op` has made.
    int64_t alive_bytes_of(size_t op) const { return alive_bytes_of_[op]; }

  private:
    struct Block {
        size_t op = 0;
        int64_t bytes = 0;
    };
    void add(Block& block, int64_t bytes);

    std::unordered_map<const void*, Block> blocks_;  ///< alive
    std::vector<int64_t> alive_bytes_of_;
    int64_t alive_bytes_ = 0;
    size_t op_ = 0;
};

}  // namespace vpp
