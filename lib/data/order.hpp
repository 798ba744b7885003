#pragma once
// Which sample comes when: sample k of the training is perm(k div N)[k mod N], a pure function of (seed, epoch); epochs
// run on without a gap. With weights the files take turns (data/mixture). The order does not depend on the layout.
#include <cstdint>
#include <optional>
#include <vector>

#include "data/dataset.hpp"
#include "data/mixture.hpp"

namespace vpp {

/// The order of training samples.
class SampleOrder {
  public:
    SampleOrder(int64_t num_samples, uint64_t seed, bool shuffle);
    explicit SampleOrder(detail::Mixture mixture);
    /// The training's sample number `position` (0, 1, 2, ...): the data set's index, and its epoch.
    Draw draw(int64_t position) const;
    int64_t sample(int64_t position) const { return draw(position).sample; }
    /// Those from number `first` on. Step k of a training takes global_batch_size of them from k * global_batch_size
    /// on.
    std::vector<Draw> draws(int64_t first, int64_t count) const;

  private:
    int64_t num_samples_ = 0;
    uint64_t seed_ = 0;
    bool shuffle_ = false;
    std::optional<detail::Mixture> mixture_;
};

/// The order that a plan's training takes. Throws Error{Plan} for weights that do not fit the files.
SampleOrder training_order(const Dataset& training, const Plan& plan);

}  // namespace vpp
