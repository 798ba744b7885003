#include "graph/meta_memory.hpp"

#include <memory>

namespace vpp {

namespace {

void report(int64_t bytes) {
    c10::reportMemoryUsageToProfiler(nullptr, bytes, 0, 0, at::kMeta);
}

class ReportingAllocator final : public c10::Allocator {
  public:
    c10::DataPtr allocate(size_t num_bytes) override {
        report(static_cast<int64_t>(num_bytes));
        return {nullptr, std::make_unique<size_t>(num_bytes).release(), &free, at::kMeta};
    }
    void copy_data(void* /*to*/, const void* /*from*/, size_t /*num_bytes*/) const override {}

  private:
    static void free(void* context) {
        const std::unique_ptr<size_t> num_bytes(static_cast<size_t*>(context));
        if (num_bytes) report(-static_cast<int64_t>(*num_bytes));
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

}  // namespace vpp
