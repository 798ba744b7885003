#pragma once
// Proof by running: the reference on one rank, then the pipeline, compared bit by bit after every step. Losses,
// gradients, parameters, buffers, optimizer state and gradient norms; only digests of the reference are kept.
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "comm/transport.hpp"
#include "engine/engine.hpp"

namespace vpp {

/// What one run gave, by step: digests of tensors, and the bits of losses and norm as texts.
struct RunRecord {
    std::vector<std::map<std::string, std::string>> steps;
};

struct VerifyResult {
    int64_t steps = 0;
    int64_t num_compared = 0;  ///< values of all steps
    bool is_equal = false;
    int64_t different_step = 0;  ///< counted from 1; 0 when equal
    std::string difference;      ///< the first one: name and both values
    int64_t num_different = 0;   ///< of that step
};

/// Called after every step: to tell others that the run goes on, or in tests to break something.
using AfterStep = std::function<void(Engine&, int64_t step)>;

/// Runs `steps` steps and records them on rank 0.  Calls: collective.
RunRecord record_run(Engine& engine, int64_t steps, const AfterStep& after_step = {});

/// The first difference, in the order losses, norm, gradients, parameters, buffers, optimizer state.
VerifyResult compare_runs(const RunRecord& reference, const RunRecord& pipeline);

/// The one-stage run of the same program, in this process, on one thread.
RunRecord record_reference(const Plan& plan, const Program& program, const Datasets& data, int64_t steps,
                           const AfterStep& after_step = {});

}  // namespace vpp
