#include "data/order.hpp"

#include <limits>

#include "base/error.hpp"
#include "base/random.hpp"

namespace vpp {

SampleOrder::SampleOrder(int64_t num_samples, uint64_t seed, bool shuffle)
    : num_samples_(num_samples), seed_(seed), shuffle_(shuffle) {
    check(num_samples > 0, "an order needs at least one sample");
}

int64_t SampleOrder::sample(int64_t position) const {
    check(position >= 0, "positions count from 0");
    const int64_t epoch = position / num_samples_, index = position % num_samples_;
    if (!shuffle_) return index;
    return Permutation(num_samples_, combine_key(seed_, static_cast<uint64_t>(epoch)))(index);
}

std::vector<Draw> SampleOrder::step_draws(int64_t step, int64_t global_batch_size) const {
    check(step >= 0 && global_batch_size > 0, "a step takes samples");
    check(step < std::numeric_limits<int64_t>::max() / global_batch_size, "the step's positions fit in 63 bits");
    std::vector<Draw> draws;
    draws.reserve(static_cast<size_t>(global_batch_size));
    const int64_t first = step * global_batch_size;
    for (int64_t i = 0; i < global_batch_size; ++i) draws.push_back({sample(first + i), (first + i) / num_samples_});
    return draws;
}

}  // namespace vpp
