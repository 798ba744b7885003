#pragma once
// Evaluation: forward actions only, over the validation data in its own order. It uses no key, changes no buffer and
// moves no data position, so a training that evaluates has the bits of one that does not. The same class runs inside a
// training (Engine::evaluate) and alone (`vpp eval`), where a rank holds weights and nothing else.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "comm/transport.hpp"
#include "engine/evaluation_samples.hpp"
#include "engine/executor.hpp"
#include "engine/loader.hpp"
#include "engine/prefetch.hpp"
#include "engine/target_count.hpp"
#include "plan/plan.hpp"
#include "program/program.hpp"
#include "stage/weights.hpp"

namespace vpp {

struct EvaluationResult {
    double loss = 0;  ///< mean over samples, or over targets
    int64_t samples = 0;
    double seconds = 0;
    std::optional<double> accuracy;    ///< where eval.metrics names it and a target counts
    std::optional<double> perplexity;  ///< where eval.metrics names it
    std::string remark;                ///< for the log: where the loss is not finite
    bool took_memory = false;          ///< some rank, of its device
    bool stopped = false;  ///< before the end, since some rank was asked to stop; the rest means nothing then
};

/// Whether this process was asked to stop; may change at any time.
using StopRequest = std::function<bool()>;

/// Gets the model's outputs (Graph::outputs) of one microbatch, in sample order, on the rank that makes them.
using TakeOutputs = std::function<void(const std::vector<at::Tensor>& outputs, int64_t num_samples)>;

/// What accuracy is made of, and a mean over targets.
struct Tally {
    int64_t targets = 0;  ///< that count
    int64_t hits = 0;     ///< those of them that are the largest output
    void add(const Tally& other) {
        targets += other.targets;
        hits += other.hits;
    }
};

/// Of a group of microbatches for each replica, the same on every rank.
struct GroupResult {
    std::vector<double> losses;  ///< in the order of the samples
    Tally tally;
    bool stop = false;
    bool took_memory = false;  ///< some rank, of its device
};

class Evaluator {
  public:
    /// Requires: the program has an evaluation phase; `weights` holds what its stages of this rank use.
    /// Owns: borrows plan, program and transport, which must outlive it; shares the data and the weights' tensors.
    Evaluator(const Plan& plan, const Program& program, Source& source, const Weights& weights,
              std::shared_ptr<const Dataset> validation, Transport& transport);

    /// The mean loss over the first samples; `take` gets the outputs where the program has any: then replica 0 alone is
    /// at work. The bits depend on the
    /// microbatch size, not on stages, ranks or the number of microbatches.
    /// Calls: collective.  Requires: 1 <= num_samples <= what the data have.
    EvaluationResult run(int64_t num_samples, const TakeOutputs& take = {});

    /// Whether ops may be recorded from now on: not before it is known what memory steps take, if there are any.
    void set_may_record(bool may_record) { executor_->set_may_record(may_record); }
    /// Other work takes memory of devices: an evaluation may find none of what it had.
    void expect_memory_taken() { takes_memory_ = true; }

    /// For who looks on.
    const Executor& executor() const { return *executor_; }

    /// Asked after every group of microbatches; a yes on any rank ends the evaluation on all.
    void set_stop_request(StopRequest request) { stop_request_ = std::move(request); }

  private:
    /// One time through the data.
    struct Pass {
        EvaluationSamples samples;
        const TakeOutputs& take;
        Prefetch prefetch;
    };
    Prefetch make_prefetch(const EvaluationSamples& samples) const;
    /// The losses of a group: each replica runs the microbatches of its part of it.
    GroupResult run_group(Pass& pass, int64_t group);
    /// Gives the tally of this rank.
    Tally run_replica(Pass& pass, int64_t group);
    std::string describe_non_finite(const std::vector<Draw>& samples) const;
    void add_metrics(const Tally& tally, EvaluationResult& result) const;

    const Plan& plan_;
    const Program& program_;
    std::shared_ptr<const Dataset> validation_;  ///< a thread may still read when the training has ended
    Transport& transport_;
    Loader loader_;
    std::optional<TargetCount> targets_;  ///< of losses of classes
    int num_replicas_;                    ///< at work
    int replica_;                         ///< this one
    std::unique_ptr<Executor> executor_;
    std::set<int64_t> sizes_seen_;  ///< of the last microbatch of a group
    bool takes_memory_ = true;      ///< some rank did in the last group, or will in the next one
    StopRequest stop_request_ = [] { return false; };
};

}  // namespace vpp
