#pragma once
// Dynamic loss scaling for fp16 with the arithmetic of torch.amp.GradScaler: the loss is multiplied by the scale, so
// that small gradients do not become zero, and the gradients are divided by it before anything looks at them. When one
// of them is not finite the step is skipped and the scale halved; after many steps without that it doubles. Every rank
// has the same scale: whether a step overflowed is what all ranks find together (engine/step_exchange.hpp).
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace vpp {

class LossScaler {
  public:
    /// Requires: the plan's ranges.
    explicit LossScaler(const TrainPlan& plan);

    double scale() const { return scale_; }
    /// The scale as a 0-dim float32, which promotes a loss of less to float32 as GradScaler does.
    at::Tensor factor() const;

    /// Multiplies gradients in place with the reciprocal of the scale. Whether a value of them is not finite.
    /// Throws: Error{BadData} for a gradient in fp16, whose parameter should have been in fp32.
    bool unscale(const std::vector<at::Tensor>& gradients) const;

    /// An overflow is only a scale that was too large, no fault of the training; below 1 it is more than that.
    bool can_be_too_large() const { return scale_ >= 1; }

    /// To be called once after every step, skipped or not.
    void update(bool overflow);

    /// Scale and steps since the last change, for a checkpoint.
    std::string memory() const;
    /// Takes what memory() gave.  Throws: Error{BadData} for any other text.
    void restore(const std::string& memory);

  private:
    float scale_;
    int64_t growth_interval_;  ///< steps
    int64_t good_steps_ = 0;   ///< in a row, since the last change
};

}  // namespace vpp
