#include "stage/tensor_memory.hpp"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <mutex>

#include "base/block_cache.hpp"
#include "base/live_bytes.hpp"

namespace vpp {

namespace {

constexpr uint8_t kPriority = 1;  // above the default allocator's

/// Blocks of the process's cache, counted on their way out and back.
class CountingAllocator : public c10::Allocator {
  public:
    explicit CountingAllocator(c10::Allocator& fallback) : fallback_(fallback) {}

    c10::DataPtr allocate(size_t num_bytes) override {
        if (num_bytes == 0) return {nullptr, nullptr, &give_back, c10::kCPU};
        if (live_bytes::Unfilled::is_on()) return fallback_.allocate(num_bytes);
        void* block = BlockCache::of_process().take(num_bytes);
        if (block == nullptr) return fallback_.allocate(num_bytes);  // which says that there is no memory
        live_bytes::add(size_of(block));
        return {block, block, &give_back, c10::kCPU};
    }
    c10::DeleterFnPtr raw_deleter() const override { return &give_back; }
    void copy_data(void* to, const void* from, size_t num_bytes) const override {
        default_copy_data(to, from, num_bytes);
    }

  private:
    static int64_t size_of(void* block) { return static_cast<int64_t>(BlockCache::size_of(block)); }
    static void give_back(void* block) {
        if (block == nullptr) return;
        live_bytes::add(-size_of(block));
        BlockCache::of_process().give(block);
    }

    c10::Allocator& fallback_;
};

}  // namespace

void count_tensor_memory() {
    static CountingAllocator counting(*c10::GetDefaultCPUAllocator());
    static std::once_flag once;
    std::call_once(once, [] { c10::SetCPUAllocator(&counting, kPriority); });
}

}  // namespace vpp
