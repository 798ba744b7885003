#pragma once
// One deferred batch norm (pipeline.deferred_batch_norm) as a plain value: a microbatch is normalised with its own
// statistics, and the running ones take one update a step, with those of the whole batch.

namespace vpp {

/// Its ops (vpp::deferred_batch_norm) add up what stage/batch_statistics.hpp binds in place of the three buffers.
struct DeferredBatchNorm {
    int running_mean = -1;  ///< the graph's parameters, all three
    int running_var = -1;
    int num_batches_tracked = -1;
    double momentum = 0;      ///< weight of the new statistics
    bool cumulative = false;  ///< their weight is 1 / num_batches_tracked instead (momentum=None)
    bool operator==(const DeferredBatchNorm&) const = default;
};

}  // namespace vpp
