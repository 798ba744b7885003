#pragma once
// Proof by running: the reference on one rank, then the pipeline, compared bit by bit after every step. Losses,
// gradients as backward left them, the norm, parameters, buffers and optimizer state, and behind the last step what an
// evaluation gives; only digests of a run are kept.
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "comm/transport.hpp"
#include "engine/engine.hpp"

namespace vpp {

/// What one step gave, by name: digests of tensors, and the bits of losses and norm as texts. The first word of a name
/// is its kind: "loss of microbatch 0", "gradient w1", "norm of all gradients", "parameter w1", "buffer m1",
/// "optimizer w1.exp_avg", "evaluation loss"; kSkipped where the step made no update.
using StepRecord = std::map<std::string, std::string>;
inline constexpr const char* kSkipped = "skipped";

/// What one run gave, by step.
struct RunRecord {
    std::vector<StepRecord> steps;
    int64_t through_host = 0;  ///< steps that sent nothing over links between cards (Transport::goes_through_host)
};

struct VerifyResult {
    int64_t steps = 0;
    int64_t num_compared = 0;                ///< values of all steps
    std::map<std::string, int64_t> by_kind;  ///< the same by kind
    bool is_equal = false;
    int64_t different_step = 0;  ///< counted from 1; 0 when equal
    std::string different_name;  ///< the first one
    std::string difference;      ///< its name and both values
    int64_t num_different = 0;   ///< of that step
    /// Whether links between cards carried nothing of the pipeline's, since in each step a rank took memory of its
    /// card.
    bool is_through_host = false;
};

/// Called after every step: to tell others that the run goes on, or in tests to break something.
using AfterStep = std::function<void(Engine&, int64_t step)>;

/// One value of a step that is wanted itself, not its digest alone.
struct StepWatch {
    std::string name;
    std::optional<at::Tensor> found;  ///< a copy, on the rank that has it; losses and norm on every rank
};

/// A value with its 64 bits: the texts of two are equal where all bits are, those of NaNs too.
std::string exact_text(double value);

/// Runs one step and records it on rank 0.  Calls: collective.
StepRecord record_step(Engine& engine, int64_t step, const AfterStep& after_step = {}, StepWatch* watch = nullptr);

/// Evaluates and adds what that gives.  Requires: the engine can.  Calls: collective.
void record_evaluation(Engine& engine, StepRecord& record, StepWatch* watch = nullptr);

/// Runs `steps` steps and records them on rank 0.  Calls: collective.
RunRecord record_run(Engine& engine, int64_t steps, const AfterStep& after_step = {});

/// The first difference, in the order losses, gradients, norm, parameters, buffers, optimizer state, evaluation.
VerifyResult compare_runs(const RunRecord& reference, const RunRecord& pipeline);

/// Calls `body` with an engine of the one-stage program, in this process, on one thread, on cards op by op. The model
/// is read anew.
void with_reference(const Plan& plan, const Program& program, const Datasets& data,
                    const std::function<void(Engine& engine, Program& reference)>& body, at::Device device = at::kCPU);

}  // namespace vpp
