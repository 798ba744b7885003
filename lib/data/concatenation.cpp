#include "data/concatenation.hpp"

#include <algorithm>
#include <numeric>

#include "base/error.hpp"

namespace vpp::detail {

void Concatenation::add(int64_t num_samples) {
    ends_.push_back(this->num_samples() + num_samples);
}

std::vector<int64_t> Concatenation::file_samples() const {
    std::vector<int64_t> samples(ends_.size());
    std::adjacent_difference(ends_.begin(), ends_.end(), samples.begin());
    return samples;
}

Concatenation::Place Concatenation::locate(int64_t sample) const {
    const auto end = std::upper_bound(ends_.begin(), ends_.end(), sample);
    check(sample >= 0 && end != ends_.end(), "the sample exists");
    const int64_t before = end == ends_.begin() ? 0 : *(end - 1);
    return {static_cast<size_t>(end - ends_.begin()), sample - before};
}

}  // namespace vpp::detail
