// Source: ATen/cuda/CUDAGeneratorImpl.h, Note [CUDA Graph-safe RNG states]: a random op that is recorded is given
// where its seed and offset will be.
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <optional>

#include "device/card_seeds.hpp"
#include "device/device_marks.hpp"

namespace vpp {

namespace {

constexpr int64_t kMostSeeds = 1024;
constexpr int64_t kSlots = 8;  // the host may be so many replays ahead of the card

class CudaSeeds : public CardSeeds {
  public:
    explicit CudaSeeds(at::Device device)
        : generator_(at::cuda::detail::getDefaultCUDAGenerator(device.index())),
          seeds_(at::zeros({kMostSeeds}, at::TensorOptions(at::kLong).device(device))),
          offset_(at::zeros({1}, seeds_.options())),
          state_(c10::make_intrusive<at::CUDAGeneratorState>()),
          recording_(c10::make_intrusive<at::CUDAGeneratorImpl>(device.index(), state_)) {
        state_->capturing_ = true;
        state_->offset_extragraph_ = offset_;
        state_->seed_extragraph_ = seeds_;
    }
    ~CudaSeeds() override { end_recording(); }
    CudaSeeds(const CudaSeeds&) = delete;
    CudaSeeds& operator=(const CudaSeeds&) = delete;

    void begin_recording() override {
        // cuDNN's dropout begins anew then, by the CPU's generator, which who records can notice.
        generator_.set_current_seed(0);
        before_ = generator_.unsafeGetGeneratorImpl()->graphsafe_get_state();
        generator_.unsafeGetGeneratorImpl()->graphsafe_set_state(recording_);
    }

    void next() override {
        TORCH_CHECK(num_seeds_ < kMostSeeds, "it has more than ", kMostSeeds, " random calls");
        state_->seed_extragraph_ = seeds_.narrow(0, num_seeds_++, 1);
        state_->offset_intragraph_ = 0;
    }

    void end_recording() override {
        if (before_) generator_.unsafeGetGeneratorImpl()->graphsafe_set_state(before_);
        before_.reset();
    }

    void fill(const std::vector<uint64_t>& seeds) override {
        if (seeds.empty()) return;
        const auto count = static_cast<int64_t>(seeds.size());
        if (!pinned_.defined()) pinned_ = at::empty({kSlots, count}, at::TensorOptions(at::kLong).pinned_memory(true));
        const auto slot = static_cast<int64_t>(num_fills_++ % kSlots);
        std::optional<c10::Event>& is_read = is_read_[static_cast<size_t>(slot)];
        if (is_read) is_read->synchronize();
        const at::Tensor own = pinned_.select(0, slot);
        std::copy(seeds.begin(), seeds.end(), static_cast<uint64_t*>(own.mutable_data_ptr()));
        seeds_.narrow(0, 0, count).copy_(own, /*non_blocking=*/true);
        is_read = moment_of(current_stream(seeds_.device()));
    }

  private:
    at::Generator generator_;
    at::Tensor seeds_, offset_;
    int64_t num_seeds_ = 0;
    at::Tensor pinned_;  ///< slots that the card copies by itself: taken once, as that may wait for all that it does
    std::array<std::optional<c10::Event>, kSlots> is_read_;
    int64_t num_fills_ = 0;
    c10::intrusive_ptr<at::CUDAGeneratorState> state_;
    c10::intrusive_ptr<c10::GeneratorImpl> recording_, before_;
};

}  // namespace

std::unique_ptr<CardSeeds> make_card_seeds(at::Device device) {
    return std::make_unique<CudaSeeds>(device);
}

}  // namespace vpp
