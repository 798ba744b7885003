#include "data/order.hpp"

#include <limits>
#include <utility>

#include "base/error.hpp"
#include "base/random.hpp"

namespace vpp {

SampleOrder::SampleOrder(int64_t num_samples, uint64_t seed, bool shuffle)
    : num_samples_(num_samples), seed_(seed), shuffle_(shuffle) {
    check(num_samples > 0, "an order needs at least one sample");
}

SampleOrder::SampleOrder(detail::Mixture mixture) : mixture_(std::move(mixture)) {}

Draw SampleOrder::draw(int64_t position) const {
    check(position >= 0, "positions count from 0");
    if (mixture_) return mixture_->draw(position);
    const int64_t epoch = position / num_samples_, index = position % num_samples_;
    if (!shuffle_) return {index, epoch};
    return {Permutation(num_samples_, combine_key(seed_, static_cast<uint64_t>(epoch)))(index), epoch};
}

std::vector<Draw> SampleOrder::draws(int64_t first, int64_t count) const {
    check(count >= 0 && first <= std::numeric_limits<int64_t>::max() - count, "positions fit in 63 bits");
    std::vector<Draw> draws;
    draws.reserve(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) draws.push_back(draw(first + i));
    return draws;
}

SampleOrder training_order(const Dataset& training, const Plan& plan) {
    const std::vector<double>& weights = plan.data.weights;
    if (weights.empty()) return {training.fields().num_samples, plan.train.seed, plan.data.shuffle};
    const std::vector<int64_t> file_samples = training.file_samples();
    if (file_samples.size() != weights.size()) {
        throw Error(ErrorKind::Plan,
                    "data.weights needs a number for each file of data.train (got " + std::to_string(weights.size()) +
                        " for " + std::to_string(file_samples.size()) + ")",
                    plan.where("data.weights"));
    }
    const std::vector<int64_t> shares = detail::share_out(weights);
    for (size_t i = 0; i < shares.size(); ++i) {
        if (shares[i] > 0) continue;
        const std::string key = "data.weights[" + std::to_string(i) + "]";
        throw Error(ErrorKind::Plan,
                    key + " is too small beside the others: weights are shared out in steps of 1/" +
                        std::to_string(detail::Mixture::kBlockDraws) + "; leave the file out, or raise it",
                    plan.where(key));
    }
    for (size_t i = 0; i < file_samples.size(); ++i) {
        if (file_samples[i] > 0) continue;
        throw Error(ErrorKind::BadData,
                    "data.val_split leaves no sample of file " + std::to_string(i) +
                        " of data.train for the training, and data.weights draws from it; try a smaller share",
                    plan.where("data.val_split"));
    }
    return SampleOrder(detail::Mixture(file_samples, weights, plan.train.seed, plan.data.shuffle));
}

}  // namespace vpp
