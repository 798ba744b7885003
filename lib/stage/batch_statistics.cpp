#include "stage/batch_statistics.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/div.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>

#include "base/error.hpp"

namespace vpp {

BatchStatistics::BatchStatistics(const Graph& graph, const Weights& weights) : weights_(weights) {
    const std::vector<int>& owned = weights.owned();
    const auto is_owned = [&](int buffer) { return std::binary_search(owned.begin(), owned.end(), buffer); };
    for (const DeferredBatchNorm& norm : graph.deferred_batch_norms) {
        if (!is_owned(norm.running_mean)) continue;
        check(is_owned(norm.running_var) && is_owned(norm.num_batches_tracked),
              "the buffers of a batch norm belong to one stage");
        own_.push_back(norm);
        for (int buffer : {norm.running_mean, norm.running_var, norm.num_batches_tracked}) {
            sums_[buffer] = at::zeros_like(weights.at(buffer));
        }
    }
}

void BatchStatistics::begin_step() {
    for (const auto& [buffer, sum] : sums_) sum.zero_();
}

void BatchStatistics::commit() {
    const at::NoGradGuard no_grad;
    for (const DeferredBatchNorm& norm : own_) update(norm);
}

void BatchStatistics::update(const DeferredBatchNorm& norm) const {
    const auto count = sums_.at(norm.num_batches_tracked).item<int64_t>();
    if (count == 0) return;
    const at::Tensor& batches = weights_.at(norm.num_batches_tracked);
    batches.add_(1);
    const double momentum = norm.cumulative ? 1.0 / batches.item<double>() : norm.momentum;
    const at::Tensor mean = at::div(sums_.at(norm.running_mean), count);
    const at::Tensor var = at::div(sums_.at(norm.running_var), count) - at::pow(mean, 2);
    weights_.at(norm.running_mean).mul_(1 - momentum).add_(mean * momentum);
    weights_.at(norm.running_var).mul_(1 - momentum).add_(var * momentum);
}

}  // namespace vpp
