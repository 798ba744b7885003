#include "stage/tensor_memory.hpp"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <malloc.h>

#include <mutex>

#include "base/live_bytes.hpp"

namespace vpp {

namespace {

constexpr uint8_t kPriority = 1;  // above the default allocator's

/// The default allocator, whose blocks are counted on their way out and back.
class CountingAllocator : public c10::Allocator {
  public:
    explicit CountingAllocator(c10::Allocator& blocks) : blocks_(blocks) { free_ = blocks.raw_deleter(); }

    c10::DataPtr allocate(size_t num_bytes) override {
        c10::DataPtr block = blocks_.allocate(num_bytes);
        if (block.compare_exchange_deleter(free_, &free_counted)) live_bytes::add(size_of(block.get()));
        return block;
    }
    c10::DeleterFnPtr raw_deleter() const override { return &free_counted; }
    void copy_data(void* to, const void* from, size_t num_bytes) const override {
        default_copy_data(to, from, num_bytes);
    }

  private:
    static int64_t size_of(void* block) { return static_cast<int64_t>(malloc_usable_size(block)); }
    static void free_counted(void* block) {
        live_bytes::add(-size_of(block));
        free_(block);
    }

    static inline c10::DeleterFnPtr free_ = nullptr;  // a deleter is a plain function
    c10::Allocator& blocks_;
};

}  // namespace

void count_tensor_memory() {
    static CountingAllocator counting(*c10::GetDefaultCPUAllocator());
    static std::once_flag once;
    std::call_once(once, [] { c10::SetCPUAllocator(&counting, kPriority); });
}

}  // namespace vpp
