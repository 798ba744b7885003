#pragma once
// `vpp eval`: the weights of a checkpoint, forward only, over validation data. A rank holds its stages' weights, and
// neither gradients nor optimizer state.
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "comm/transport.hpp"
#include "engine/evaluation.hpp"
#include "engine/evaluation_request.hpp"
#include "plan/plan.hpp"
#include "program/prepare.hpp"

namespace vpp {

struct EvaluationReport {
    EvaluationResult result;
    std::filesystem::path checkpoint;  ///< empty with initial_weights
    int64_t step = 0;                  ///< updates that the checkpoint has seen
    std::vector<std::filesystem::path> files;
};

/// Opens the validation data alone. Throws Error{Plan} when the plan names none.
Datasets open_validation(const Plan& plan);

/// What is to be prepared for a request.
/// Throws Error{BadData} when no sample is left.
EvaluationWish evaluation_wish(const Plan& plan, const Datasets& data, const EvaluationRequest& request);

/// Evaluates; outputs are published when all is done.
/// Requires: prepared by prepare_evaluation for this wish.
/// Calls:    collective.
/// Throws:   what load_weights, OutputFiles and the stages throw; never Error{NotFinite}: a loss that is not finite is
///           a result.
EvaluationReport evaluate_checkpoint(const Plan& plan, Prepared& prepared, const Datasets& data,
                                     const EvaluationWish& wish, const EvaluationRequest& request, Transport& transport,
                                     const Logger& log);

}  // namespace vpp
