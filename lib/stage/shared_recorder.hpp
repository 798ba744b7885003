#pragma once
// Memory that recordings of a rank have together (device/card_graph.hpp): for graphs of which each begins with what is
// given it and leaves nothing for another one, as those of microbatches do that are evaluated or recomputed. Then the
// rank needs what the largest of them works with once, and not once for each.
#include <c10/core/Device.h>

#include <cstdint>
#include <memory>

#include "device/card_graph.hpp"

namespace vpp {

class SharedRecorder {
  public:
    /// For the segments of a rank; null where they are not to be recorded, or cannot be.
    static std::shared_ptr<SharedRecorder> where(bool is_wanted, at::Device device) {
        return is_wanted && device.is_cuda() ? std::make_shared<SharedRecorder>(device) : nullptr;
    }
    /// Makes nothing yet.
    explicit SharedRecorder(at::Device device) : device_(device) {}

    /// The same for all who have it at once. When nobody has, nor graphs of it, its memory is given back.
    std::shared_ptr<CardRecorder> get();
    /// One has recorded that works with so many bytes beside what it keeps.
    void note_work(int64_t num_bytes);
    /// What its graphs work with; 0 when there are none.
    int64_t work_bytes() const { return recorder_.expired() ? 0 : work_bytes_; }
    /// Gives back what the allocator keeps for later (device/memory_meter.hpp), for graphs to be made in. The most that
    /// it was: what steps may take again, whichever segment records first.
    int64_t give_back_memory();

  private:
    at::Device device_;
    std::weak_ptr<CardRecorder> recorder_;
    int64_t work_bytes_ = 0;
    int64_t given_back_bytes_ = 0;
};

}  // namespace vpp
