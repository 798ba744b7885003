#pragma once
// The engine of one rank: runs a Program step by step. It holds weights, stages, optimizer and transport together and
// knows no command: train, verify and the tests drive it. The reference run is this class on one rank.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/transport.hpp"
#include "data/order.hpp"
#include "engine/evaluation.hpp"
#include "engine/executor.hpp"
#include "engine/gradient_reduction.hpp"
#include "engine/loader.hpp"
#include "engine/loss_scaler.hpp"
#include "engine/memory_remarks.hpp"
#include "engine/non_finite.hpp"
#include "engine/prefetch.hpp"
#include "engine/program_links.hpp"
#include "engine/replica_buffers.hpp"
#include "engine/replica_optimizer.hpp"
#include "engine/stage_memory.hpp"
#include "engine/step_exchange.hpp"
#include "engine/step_guard.hpp"
#include "engine/tied_weights.hpp"
#include "engine/written_buffers.hpp"
#include "optim/optimizer.hpp"
#include "program/prepare.hpp"
#include "program/program.hpp"
#include "schedule/measured_step.hpp"
#include "stage/batch_statistics.hpp"

namespace vpp {

/// What a step gave; the same on every rank.
struct StepResult {
    double loss = 0;                        ///< mean over the microbatches, or their sum
    std::vector<double> microbatch_losses;  ///< of all replicas, in the order of the samples
    double grad_norm = 0;                   ///< before clipping; 0 without any gradient
    bool clipped = false;
    bool updated = true;  ///< false: the step was skipped (train.on_nonfinite, train.on_spike, an overflow in fp16)
    std::optional<double> loss_scale;  ///< fp16: of this step
    std::string remark;                ///< why it was skipped, or is worth a warning
    double lr = 0;                     ///< of the parameters that no group takes
    StepTotals totals;
    bool went_through_host = false;  ///< parts of its messages (Transport::goes_through_host)
    double seconds = 0;              ///< of this rank, update included
    StepMoments moments;             ///< of this rank, on its own clock
    std::vector<ReadSpan> reads;     ///< of this rank since the step before, on its own clock
};

class Engine {
  public:
    /// Reads this rank's weights from the model file; connects the cards of the ranks where mesh.transport is "nccl".
    /// Requires: the program was made for this plan; the transport has as many ranks as the program's mesh.
    /// Owns: borrows everything; plan, program, sources, data and transport must outlive it.
    /// Calls: collective.
    Engine(const Plan& plan, const Program& program, Sources& sources, const Datasets& data, Transport& transport);
    ~Engine();

    /// One optimizer update; `step` counts finished updates.  Calls: collective.
    /// `before_update` is called between the last action and clipping, where gradients are what backward left (in fp16
    /// without the loss scale).
    /// A loss or norm that is not finite, or a spike, is met before the update as train.on_nonfinite and train.on_spike
    /// say; a value that is not finite is looked for by running the step's actions once more. In fp16 gradients that
    /// overflow under a finite loss skip the step, as long as a smaller loss scale may help. A skipped step changes
    /// nothing but the loss scale. Throws Error{NotFinite} on every rank where the plan says "stop", and where an
    /// earlier update has damaged the weights, so that it is in vain to skip.
    StepResult run_step(int64_t step, const std::function<void()>& before_update = {});

    /// The actions of a step and the exchange behind them, without an update: nothing changes but the gradients.
    /// Calls: collective.
    StepTotals run_without_update(int64_t step);

    /// Of the microbatches that were run, as model.loss_reduction says.
    double loss_of(const StepTotals& totals) const;

    /// The mean loss over the validation data (train.eval_batches batches of it, or all); changes nothing.
    /// Calls: collective.  Requires: the program has an evaluation phase.
    EvaluationResult evaluate();

    /// Before a save behind `step` updates: weights that one of them has made not finite would take the place of good
    /// ones.  Calls: collective.  Throws: Error{NotFinite} on every rank.
    void check_weights(int64_t step);

    /// The first buffer, such as a running variance, that was finite when training began and that steps have made not
    /// finite: evaluation goes by it.  Calls: collective.
    std::optional<std::string> find_damaged_buffer();

    /// What the last step held (engine/stage_memory.hpp).  Calls: collective.
    MemoryEvent measure_memory();

    /// Asked once per step and per group of evaluated microbatches, on each rank: whether this process was told to
    /// stop. What any rank answers is in StepTotals::stop and EvaluationResult::stopped of all.
    void set_stop_request(StopRequest request);

    /// Asked once per step on each rank: whether a save is due for a reason that not all ranks know. What any rank
    /// answers is in StepTotals::save of all.
    void set_save_request(StopRequest request) { save_request_ = std::move(request); }

    /// Judges the steps; a run that goes on from a checkpoint restores it.
    StepGuard& guard() { return guard_; }
    /// The same for fp16; empty for other precisions.
    std::optional<LossScaler>& loss_scaler() { return loss_scaler_; }

    int64_t total_steps() const { return total_steps_; }
    bool can_evaluate() const { return program_.evaluation.has_value(); }

    /// All tensors of this rank by what they are: "parameter x", "gradient x" (of the last step, as clipped; only those
    /// that exist), "buffer x", "optimizer x.exp_avg". Views, but for optimizer state of which replicas have parts:
    /// that is one replica's copy.  Calls: collective over the replicas.
    std::vector<StateTensor> tensors() const;

    /// What this rank saves: parameters, buffers and optimizer state by name: "model.<fqn>", "optimizer.<fqn>.<key>".
    /// Each is saved by one replica. Views, as tensors().  Calls: collective over the replicas.
    std::vector<StateTensor> state() const;
    /// Of all that the state() of a rank will have once every parameter has had a gradient; right in the sum over the
    /// replicas.
    int64_t full_state_bytes() const;
    /// Takes values by name. A buffer that nothing writes may get none and stays; optimizer state without one begins
    /// anew.
    void load_state(const StateReader& read);

    /// Executor::recording_problems of the steps and of evaluations.
    std::string recording_problems() const;

    /// What carries the program's values, and all else between its ranks.
    Transport& transport() { return transport_; }
    /// Where this rank computes.
    at::Device device() const { return weights_.device(); }
    /// What runs the training's actions: for who looks on.
    Executor& executor() { return *training_; }
    /// Requires: can_evaluate().
    const Evaluator& evaluator() const { return *evaluator_; }

  private:
    StepShare run_actions(int64_t step);
    std::unique_ptr<Prefetch> make_prefetch() const;
    /// An input that was read ahead.
    at::Tensor take(const InputNeed& need);
    int64_t targets_of(int64_t step);
    at::Tensor loss_factor(int64_t targets) const;
    void run_replica(int64_t step, int replica, const at::Tensor& loss_factor);
    void run_replicas(int64_t step, StepShare& share);
    void sum_up(const std::vector<std::vector<at::Tensor>>& gradients);
    int dp_coordinate() const { return program_.mesh.coordinate(transport_.rank()).dp; }
    int64_t first_update_bytes() const;
    std::vector<at::Tensor> gradients() const;
    std::vector<StepShare::Norm> gradient_norms() const;
    bool unscale_gradients();
    void judge(int64_t step, StepResult& result);
    void step_optimizer(int64_t step);
    void mind_memory(const StepTotals& totals);
    void expect_memory_taken();
    void remark_memory(int64_t step, StepResult& result);
    void update(int64_t step, const StepTotals& totals, StepResult& result);
    struct Trouble {
        std::string words;
        std::string remedy = "Lower optimizer.lr or set optimizer.clip_norm, and look at the samples";
        bool is_lasting = false;  ///< in the weights: later steps have it too
    };
    Trouble find_trouble(int64_t step, const StepTotals& totals);
    Trouble find_non_finite(int64_t step);
    void look_at_start();
    std::optional<std::string> find_damaged_parameter() { return first_damaged(trained_); }
    std::optional<std::string> first_damaged(const std::vector<int>& weights);
    std::string remedy_of_damage(int64_t step) const;
    std::vector<Draw> samples_of(int64_t step, int replica, int microbatch) const;

    const Plan& plan_;
    const Program& program_;
    const Datasets& data_;
    ProgramTransport program_transport_;
    Transport& transport_;
    int64_t total_steps_;
    int64_t num_steps_run_ = 0;  ///< by this engine
    bool has_updated_ = false;   ///< this engine has, once
    Weights weights_;
    std::unique_ptr<TiedWeights> tied_;
    std::unique_ptr<BatchStatistics> statistics_;
    SampleOrder order_;
    Loader loader_;
    std::optional<TargetCount> targets_;  ///< of losses of classes
    std::unique_ptr<Executor> training_;
    std::unique_ptr<Evaluator> evaluator_;
    StopRequest stop_request_ = [] { return false; };
    StopRequest save_request_ = [] { return false; };
    StepGuard guard_;
    std::optional<LossScaler> loss_scaler_;  ///< in fp16
    std::unique_ptr<WrittenBuffers> buffers_;
    std::vector<int> trained_;  ///< owned parameters that require a gradient, ascending
    std::vector<ReplicaShares> shares_;
    std::unique_ptr<GradientReduction> reduction_;  ///< null where one replica is at work
    std::unique_ptr<ReplicaBuffers> replica_buffers_;
    std::unique_ptr<ReplicaOptimizer> optimizer_;
    std::unique_ptr<Prefetch> prefetch_;
    int64_t flushes_told_;              ///< MemoryMeter::flushes when last told of
    int64_t memory_taken_;              ///< MemoryMeter::taken when last looked at
    std::optional<bool> began_finite_;  ///< the parameters, before the first step that was run
    std::vector<int> finite_buffers_;   ///< owned ones that steps write and that were finite then
    MemoryRemarks memory_remarks_;
};

/// Updates that a plan asks for: train.steps, or train.epochs worth of whole batches.
/// Throws: Error{Plan} for more samples than can be counted, and for a warm-up that is longer than all epochs.
int64_t total_steps(const Plan& plan, int64_t num_samples);

}  // namespace vpp
