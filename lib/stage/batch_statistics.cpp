#include "stage/batch_statistics.hpp"

#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/div.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/stack.h>
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
            const at::Tensor& own = weights.at(buffer);
            sums_[buffer] = at::zeros_like(own, own.options().dtype(at::toOpMathType(own.scalar_type())));
        }
    }
}

void BatchStatistics::begin_step() {
    for (const auto& [buffer, sum] : sums_) sum.zero_();
}

/// All counts are read at once: each read waits for the device.
void BatchStatistics::commit() {
    if (own_.empty()) return;
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> on_device;
    for (const DeferredBatchNorm& norm : own_) {
        on_device.push_back(sums_.at(norm.num_batches_tracked).to(at::kLong).reshape({}));
        on_device.push_back(weights_.at(norm.num_batches_tracked).to(at::kLong).reshape({}));
    }
    const at::Tensor counts = at::stack(on_device).cpu();
    const int64_t* count = counts.const_data_ptr<int64_t>();
    for (const DeferredBatchNorm& norm : own_) {
        const int64_t num_values = *count++, num_batches = *count++;
        if (num_values > 0) update(norm, num_values, num_batches + 1);
    }
}

void BatchStatistics::update(const DeferredBatchNorm& norm, int64_t num_values, int64_t num_batches) const {
    const double momentum = norm.cumulative ? 1.0 / static_cast<double>(num_batches) : norm.momentum;
    const at::Tensor mean = at::div(sums_.at(norm.running_mean), num_values);
    // Rounding may leave less than nothing of values that are nearly equal.
    const at::Tensor var = at::clamp_min(at::div(sums_.at(norm.running_var), num_values) - at::pow(mean, 2), 0);
    weights_.at(norm.num_batches_tracked).fill_(num_batches);
    weights_.at(norm.running_mean).mul_(1 - momentum).add_(mean * momentum);
    weights_.at(norm.running_var).mul_(1 - momentum).add_(var * momentum);
}

}  // namespace vpp
