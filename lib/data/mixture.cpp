#include "data/mixture.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.hpp"
#include "base/random.hpp"

namespace vpp::detail {

std::vector<int64_t> share_out(std::vector<double> weights) {
    // Weights near the end of a double would have no finite sum; a power of two leaves the shares of others their bits.
    const int exponent = std::ilogb(*std::ranges::max_element(weights));
    for (double& weight : weights) weight = std::scalbn(weight, -exponent);
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    std::vector<int64_t> shares;
    std::vector<double> rests;
    for (const double weight : weights) {
        const double exact = weight / sum * static_cast<double>(Mixture::kBlockDraws);
        shares.push_back(static_cast<int64_t>(exact));
        rests.push_back(exact - std::floor(exact));
    }
    std::vector<size_t> order(weights.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rests[a] > rests[b]; });
    const int64_t missing = Mixture::kBlockDraws - std::accumulate(shares.begin(), shares.end(), int64_t{0});
    check(missing >= 0 && missing <= static_cast<int64_t>(shares.size()), "shares are rounded down first");
    for (int64_t i = 0; i < missing; ++i) ++shares[order[static_cast<size_t>(i)]];
    return shares;
}

Mixture::Mixture(const std::vector<int64_t>& file_samples, const std::vector<double>& weights, uint64_t seed,
                 bool shuffle)
    : seed_(seed), shuffle_(shuffle) {
    check(file_samples.size() == weights.size() && !weights.empty(), "each file has a weight");
    const std::vector<int64_t> shares = share_out(weights);
    int64_t first_sample = 0;
    for (size_t i = 0; i < shares.size(); ++i) {
        check(file_samples[i] > 0 && shares[i] > 0, "each file has samples and a share");
        files_.push_back({first_sample, file_samples[i], shares[i]});
        first_sample += file_samples[i];
    }
    // The next draw is of the file that is furthest behind its share.
    std::vector<int64_t> drawn(files_.size());
    for (int64_t i = 1; i <= kBlockDraws; ++i) {
        const auto behind = [&](size_t file) { return files_[file].share * i - kBlockDraws * drawn[file]; };
        size_t next = 0;
        for (size_t file = 1; file < files_.size(); ++file) {
            if (behind(file) > behind(next)) next = file;
        }
        slots_.push_back({next, drawn[next]++});
    }
}

Draw Mixture::draw(int64_t position) const {
    check(position >= 0, "positions count from 0");
    const Slot& slot = slots_[static_cast<size_t>(position % kBlockDraws)];
    const File& file = files_[slot.file];
    const int64_t number = position / kBlockDraws * file.share + slot.before;
    const int64_t epoch = number / file.num_samples, index = number % file.num_samples;
    if (!shuffle_) return {file.first_sample + index, epoch};
    const uint64_t key = combine_key(mix64(mix64(seed_)), static_cast<uint64_t>(slot.file));
    return {file.first_sample + Permutation(file.num_samples, combine_key(key, static_cast<uint64_t>(epoch)))(index),
            epoch};
}

}  // namespace vpp::detail
