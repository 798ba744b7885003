#pragma once
// Which sample comes when: sample k of the training is perm(k div N)[k mod N], a pure function of (seed, epoch); epochs
// run on without a gap. The order does not depend on the layout.
#include <cstdint>
#include <vector>

#include "data/dataset.hpp"

namespace vpp {

/// The order of training samples.
class SampleOrder {
  public:
    SampleOrder(int64_t num_samples, uint64_t seed, bool shuffle);
    /// The data set's index of the training's sample number `position` (0, 1, 2, ...).
    int64_t sample(int64_t position) const;
    /// What one step takes: global_batch_size samples from number step * global_batch_size on, with their epochs.
    std::vector<Draw> step_draws(int64_t step, int64_t global_batch_size) const;

  private:
    int64_t num_samples_;
    uint64_t seed_;
    bool shuffle_;
};

}  // namespace vpp
