#pragma once
// What ranks tell each other once per step, between the last action and the update: norms, losses, times. Rank 0 forms
// the totals in the model's parameter order, so the bits do not depend on who owns which parameter.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "comm/transport.hpp"
#include "schedule/measured_times.hpp"

namespace vpp {

/// What a rank has, and joined, what all have.
struct StepFigures {
    // All have the most of one.
    int64_t targets = 0;         ///< of the whole step that count, on a rank that makes losses; where they are counted
    double actions_seconds = 0;  ///< Executor::actions_seconds
    double reduce_seconds = 0;   ///< spent on the sums of replicas behind the last action
    int64_t memory_bytes = 0;    ///< peak resident
    int64_t parked_bytes = 0;
    int64_t activation_bytes = 0;  ///< Executor::activation_bytes
    // All have the sum.
    int64_t memory_flushes = 0;     ///< of its device (MemoryMeter::flushes), since the step before
    int64_t recorded_segments = 0;  ///< Executor::recorded_segments
    int64_t by_op_segments = 0;
    // All have what one has.
    bool nearly_full = false;   ///< MemoryMeter::is_nearly_full behind the last action
    bool takes_memory = false;  ///< of its device: since the step before (MemoryMeter::taken), or in the next one
    bool stop = false;          ///< this process was asked to stop
    bool save = false;          ///< this process finds that a save is due
    bool overflow = false;      ///< a gradient is not finite (LossScaler::unscale)

    bool operator==(const StepFigures&) const = default;
};

/// One rank's share.
struct StepShare : StepFigures {
    struct Norm {
        int parameter = 0;  ///< the graph's index
        at::Tensor value;   ///< 0-dim
    };
    std::vector<Norm> norms;     ///< of the gradients that exist; replica 0's, since all have the same
    int first_loss = 0;          ///< of `losses`, among those of all replicas
    std::vector<double> losses;  ///< by replica and microbatch, on the rank that makes them
    struct Stage {
        int stage = 0;
        StageTimes times;
    };
    std::vector<Stage> stages;  ///< what its actions took
    double wait_seconds = 0;
    double run_seconds = 0;
};

/// The same on every rank.
struct StepTotals : StepFigures {
    at::Tensor grad_norm;              ///< 0-dim; undefined when no parameter has a gradient
    std::vector<double> losses;        ///< by replica, then by microbatch: in the order of the samples
    std::vector<double> wait_seconds;  ///< by rank
    std::vector<double> busy_seconds;  ///< by rank: of its actions, without waits
    std::vector<StageTimes> stages;    ///< by stage: the mean of the replicas
    double slowest_seconds = 0;        ///< the largest run_seconds

    bool have_devices_room() const { return memory_flushes == 0 && !nearly_full; }
    bool may_hold_devices() const { return have_devices_room() && !takes_memory; }
};

/// The global norm is formed on rank 0's device from the norms of all, and comes back on each rank's own.
/// Calls: collective.
StepTotals exchange_step(Transport& transport, const StepShare& share, at::Device device = at::kCPU);

}  // namespace vpp
