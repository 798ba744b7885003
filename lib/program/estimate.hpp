#pragma once
// What a program will cost each rank, from shapes alone: memory by kind and traffic. For inspect and for a person's
// choice of layout; measured figures come from a run.
#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "program/program.hpp"

namespace vpp {

/// Bytes of one rank at its fullest moment, by kind. Of replicas, whose shares are nearly equal, the largest figures.
struct RankEstimate {
    std::vector<int> stages;
    std::vector<int> ranks;  ///< of the job: the replicas that run these stages
    int64_t parameter_bytes = 0;
    int64_t buffer_bytes = 0;
    int64_t gradient_bytes = 0;
    int64_t cast_bytes = 0;                ///< copies of weights in half precision, for all microbatches
    int64_t optimizer_bytes = 0;           ///< with mesh.zero1 of a share
    int64_t unshared_optimizer_bytes = 0;  ///< what it is without mesh.zero1
    int64_t activation_bytes = 0;          ///< all microbatches in flight, and a backward's gradients
    /// In place of activations where ops are recorded: each recording keeps a microbatch, under way or not, and what
    /// its backward works with; those of recomputed ones share it.
    int64_t recorded_bytes = 0;
    int64_t saved_copy_bytes = 0;  ///< what a save in the background is written from
    int64_t input_bytes = 0;       ///< training data that are read ahead
    int64_t sent_bytes = 0;        ///< per step along the PP axis, forward and backward
    int64_t replica_bytes = 0;     ///< per step along the DP axis: gradients, and with mesh.zero1 parameters
    double flops = 0;              ///< forward, per step

    int64_t total_bytes() const {
        return parameter_bytes + buffer_bytes + gradient_bytes + cast_bytes + optimizer_bytes + activation_bytes +
               saved_copy_bytes + input_bytes;
    }
    /// Of them what lies in the host's memory where the rank computes on a card.
    int64_t host_bytes() const { return saved_copy_bytes + input_bytes; }
};

/// Optimizer state tensors of a parameter's size.
int optimizer_state_tensors(const OptimizerPlan& optimizer, const std::string& parameter);

/// One entry per PP rank.
std::vector<RankEstimate> estimate_ranks(const Plan& plan, const Program& program);

/// The useful floating point operations of a training step, over all ranks: 3 x (forward FLOPs of all stages for one
/// microbatch) x microbatches x replicas. 3 since the backward is counted as twice the forward: a gradient for the
/// inputs and one for the weights of each product. What recompute runs again is not counted, so with it fewer
/// operations a second are shown than are run. Forward FLOPs are those of the ops that the split counts
/// (graph/flops.hpp).
double step_flops(const Program& program);

}  // namespace vpp
