#include "graph/meta_memory.hpp"

#include <c10/core/StorageImpl.h>

#include <memory>
#include <utility>

namespace vpp {

namespace {

thread_local bool is_told = true;

/// A context of its own for each block: what its memory is known by.
struct MetaBlock {
    int64_t bytes = 0;
};

class ReportingAllocator final : public c10::Allocator {
  public:
    c10::DataPtr allocate(size_t num_bytes) override {
        auto block = std::make_unique<MetaBlock>(MetaBlock{static_cast<int64_t>(num_bytes)});
        if (is_told) c10::reportMemoryUsageToProfiler(block.get(), block->bytes, 0, 0, at::kMeta);
        return {nullptr, block.release(), &free, at::kMeta};
    }
    void copy_data(void* /*to*/, const void* /*from*/, size_t /*num_bytes*/) const override {}

  private:
    static void free(void* context) {
        const std::unique_ptr<MetaBlock> block(static_cast<MetaBlock*>(context));
        // Less than 0 also where it has no bytes: so it is known from a block that is made.
        if (block) c10::reportMemoryUsageToProfiler(block.get(), -block->bytes - 1, 0, 0, at::kMeta);
    }
};

}  // namespace

void report_meta_memory() {
    static ReportingAllocator allocator;
    static const bool is_set = [] {
        c10::SetAllocator(at::kMeta, &allocator);
        return true;
    }();
    static_cast<void>(is_set);
}

UntoldMetaMemory::UntoldMetaMemory() : before_(std::exchange(is_told, false)) {}

UntoldMetaMemory::~UntoldMetaMemory() {
    is_told = before_;
}

void MetaMemory::reportMemoryUsage(void* memory, int64_t bytes, size_t /*allocated*/, size_t /*reserved*/,
                                   c10::Device device) {
    if (!device.is_meta()) return;
    const auto known = blocks_.find(memory);
    if (known != blocks_.end()) {
        add(known->second, -known->second.bytes);
        blocks_.erase(known);
    } else if (bytes >= 0) {
        add(blocks_[memory] = {op_, 0}, bytes);
    }
}

int64_t MetaMemory::note_size(const c10::StorageImpl& memory) {
    const auto known = blocks_.find(memory.data_ptr().get_context());
    if (known == blocks_.end()) return 0;
    add(known->second, static_cast<int64_t>(memory.nbytes()) - known->second.bytes);
    return known->second.op == op_ ? known->second.bytes : 0;
}

void MetaMemory::add(Block& block, int64_t bytes) {
    block.bytes += bytes;
    alive_bytes_of_[block.op] += bytes;
    alive_bytes_ += bytes;
}

}  // namespace vpp
