#pragma once
// Deferred batch norm (pipeline.deferred_batch_norm): sums over the microbatches of a step, and the one update of the
// running statistics at its end.
//
// Source: DeferredBatchNorm of torchgpipe and of torch.distributed.pipeline.sync, op for op: with n values a channel
// in the batch, mean = sum / n and var = sum_squares / n - mean^2. That is the biased variance, other than what
// torch.nn.BatchNorm writes to running_var; both systems have it so. num_batches_tracked grows by 1; then each running
// value is multiplied by 1 - m, and m times the new one is added, m being momentum, or 1 / num_batches_tracked where
// that is None. Where a module is called several times in a microbatch, all calls are in the sums.
#include <cstdint>
#include <map>
#include <vector>

#include "graph/graph.hpp"
#include "stage/weights.hpp"

namespace vpp {

class BatchStatistics {
  public:
    /// The deferred batch norms whose buffers `weights` owns.
    /// Owns: shares the tensors of `weights`.
    BatchStatistics(const Graph& graph, const Weights& weights);

    /// What the ops of a training step get as weights: sums in the place of the three buffers. Ops run in microbatch
    /// order; a second run of one (recompute) writes copies of what it reads here, as with every written buffer.
    Weights seen_by_ops() const { return weights_.with(sums_); }

    /// Forgets what a step that was given up has added; to be called before the first action of a step.
    void begin_step();
    /// Updates the buffers; those of a batch norm that did not run stay.
    void commit();

  private:
    /// num_values: a channel, in the batch; num_batches: this one counted.
    void update(const DeferredBatchNorm& norm, int64_t num_values, int64_t num_batches) const;

    Weights weights_;
    std::vector<DeferredBatchNorm> own_;
    std::map<int, at::Tensor> sums_;  ///< buffer -> sum, sum of squares, or number of values a channel
};

}  // namespace vpp
