#pragma once
// The part of data.train that data.val_split holds out for validation. The samples are cut, in the order of the files,
// into as many runs as samples are held out, all as long as the others or one longer, and of each run one sample is
// held out, drawn by the seed. So what is held out is a pure function of (seed, number of samples, share), comes from
// all parts of the data alike, and both parts keep the order of the files.
#include <cstdint>
#include <memory>

#include "data/dataset.hpp"

namespace vpp::detail {

/// Letters: N samples, H of them held out, one of each of H runs. Samples of either part are counted from 0.
class HeldOut {
  public:
    /// Requires: 0 < 2 * num_held_out <= num_samples.
    HeldOut(int64_t num_samples, int64_t num_held_out, uint64_t seed);
    /// Sample number i of a part, as a sample of the whole.
    int64_t sample(Subset part, int64_t i) const;
    /// How many samples of a part come before that sample of the whole.
    int64_t num_before(Subset part, int64_t sample) const;

  private:
    int64_t begin_of_run(int64_t run) const;
    int64_t held_out_of_run(int64_t run) const;
    int64_t num_samples_, num_held_out_;
    uint64_t key_;
};

/// One part of a data set, by data.val_split and train.seed; the data set itself where the plan has no split.
/// Throws Error{BadData} when there are too few samples.
std::unique_ptr<Dataset> part_of_split(std::unique_ptr<Dataset> dataset, const Plan& plan, Subset part);

}  // namespace vpp::detail
