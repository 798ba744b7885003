#pragma once
// What a training run tells about itself, as plain values, and who listens. Rank 0's engine makes the events; a
// Reporter shows or keeps them. Events hold measured quantities with units and no text to show.
//
// A step here is counted by finished updates: the first update of a training is step 1, the last is total_steps.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace vpp {

/// What the actions of a stage took in a step; of several replicas their mean.
struct StageTimesEvent {
    int rank = 0;            ///< of the pipeline
    double forward_ms = 0;   ///< F
    double backward_ms = 0;  ///< B, or I and W
    double transfer_ms = 0;  ///< writing and reading messages
    double wait_ms = 0;      ///< for messages
};

/// One update is done.
struct StepEvent {
    int64_t step = 0;
    int64_t total_steps = 0;
    double loss = 0;                        ///< of the global batch
    std::vector<double> microbatch_losses;  ///< in sample order, not scaled
    double grad_norm = 0;                   ///< global 2-norm before clipping
    bool clipped = false;                   ///< the norm was above clip_norm
    bool skipped = false;                   ///< nothing was updated (train.on_nonfinite, train.on_spike, fp16 overflow)
    std::optional<double> loss_scale;       ///< in fp16: what the loss of this step was multiplied by
    double lr = 0;                          ///< of the default parameter group, as used by this update
    double samples_per_second = 0;
    double tokens_per_second = 0;  ///< 0 = the data are not tokens
    double step_ms = 0;
    double flops = 0;                   ///< useful ones of the step (program/estimate.hpp: step_flops); 0 = not known
    double reduce_ms = 0;               ///< of it, for the sums of replicas, behind the last action of the slowest rank
    std::optional<double> bubble_mean;  ///< share of the step spent waiting for messages, 0..1, over the ranks;
                                        ///< empty when ranks exceed cores, where waiting says nothing
    std::optional<double> bubble_worst;      ///< the same of the rank that waited longest
    int worst_rank = -1;                     ///< that rank
    std::vector<StageTimesEvent> stages;     ///< what the actions of each stage took
    std::optional<double> bubble_idle;       ///< the part of P x the slowest rank's actions in which nobody was busy
    std::optional<double> bubble_predicted;  ///< the same, simulated with these times and messages that cost nothing
    int64_t memory_bytes = 0;                ///< peak resident memory of the largest rank
    int64_t activation_bytes = 0;            ///< see MemoryEvent; of the rank with most, in this step
    double eta_seconds = -1;                 ///< until the last step; negative = not known

    /// 0 = not known.
    double flops_per_second() const { return step_ms > 0 ? flops / step_ms * 1e3 : 0; }
};

/// The model was evaluated on the validation data after `step` updates.
struct EvalEvent {
    int64_t step = 0;
    double loss = 0;  ///< mean over the samples
    int64_t samples = 0;
    double seconds = 0;
    std::optional<double> accuracy = {}, perplexity = {};  ///< where the plan asks for them
};

/// A checkpoint of `step` updates is durable.
struct SaveEvent {
    int64_t step = 0;
    std::string folder;
    int64_t size_bytes = 0;
    double seconds = 0;        ///< from its start until it was durable
    double pause_seconds = 0;  ///< how long training stood still for it
};

/// What the ranks held while the actions of a step ran, and what the schedule's simulation says that they hold.
struct MemoryEvent {
    struct Rank {
        int64_t state_bytes = 0;       ///< tensors before the first action: weights and casts, buffers, optimizer state
        int64_t activation_bytes = 0;  ///< most beside those: activations, gradients, messages
        /// The same, simulated with what the actions of each stage took when they ran op by op (recorded ops hold
        /// more): when every message comes as its RECV begins, and when all that may come before do.
        int64_t least_simulated_bytes = 0;
        int64_t most_simulated_bytes = 0;
    };
    int64_t step = 0;
    std::vector<Rank> ranks;
};

/// The pipeline as it ran: the mean of the steps of a run from `first_step` to `step`, and what the simulator makes of
/// it when nothing but the schedule makes ranks wait.
struct PipelineEvent {
    int64_t first_step = 0;
    int64_t step = 0;
    std::string schedule;
    int num_ranks = 0;  ///< of the pipeline
    int num_microbatches = 0;
    std::vector<StageTimesEvent> stages;
    double actions_ms = 0;                   ///< of a step: the actions of the slowest rank
    double predicted_ms = 0;                 ///< the same, simulated
    std::optional<double> bubble_idle;       ///< as in StepEvent; empty when ranks exceed cores
    std::optional<double> bubble_predicted;  ///< the same
};

/// Listens to a run. No method throws for a line that could not be shown or kept: training goes on without it.
class Reporter {
  public:
    virtual ~Reporter() = default;
    virtual void step(const StepEvent& event) = 0;
    virtual void evaluation(const EvalEvent& event) = 0;
    virtual void saved(const SaveEvent& event) = 0;
    virtual void memory(const MemoryEvent& event) = 0;
    /// Once, behind the last step; not every listener has a use for it.
    virtual void pipeline(const PipelineEvent& /*event*/) {}
};

}  // namespace vpp
