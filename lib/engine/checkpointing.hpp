#pragma once
// An engine's state into a checkpoint and back. The format and its crash safety are the checkpoint module's; here is
// who writes what, and which differences between a checkpoint and a plan are allowed.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "checkpoint/checkpoint.hpp"
#include "engine/engine.hpp"

namespace vpp {

/// What became of a save; the same on every rank.
struct SaveResult {
    std::filesystem::path folder;  ///< the checkpoint's; empty when the save failed
    std::string problem;           ///< why it failed
    std::string note;              ///< what else went wrong: older checkpoints could not be deleted
};

/// Saves after `step` updates and prunes. A disk that is full or fails on any rank is a problem that is returned: what
/// was there before is as it was, and training may go on.
/// Calls:  collective.
/// Throws: what else goes wrong, Error{Output} for a run folder that the ranks do not share.
SaveResult save_checkpoint(Engine& engine, const Plan& plan, const Program& program, CheckpointStore& store,
                           int64_t step);

/// Fills the engine from the checkpoint that checkpoint.resume names and returns its step; empty when there is none.
/// What was skipped, and what differs from the run that saved, goes to the log of rank 0.
/// Calls:  collective.
/// Throws: Error{Refused} naming both values for another model, data, batch, seed or optimizer kind.
std::optional<int64_t> resume_checkpoint(Engine& engine, const Plan& plan, const Program& program,
                                         const CheckpointStore& store, const Logger& log);

/// Where evaluated weights come from.
struct EvaluatedCheckpoint {
    std::filesystem::path folder;
    int64_t step = 0;
};

/// Fills the weights that a rank holds for evaluation from the checkpoint `named`, or from the newest of run.dir that
/// verifies. What differs from the run that saved is said in the log of rank 0.
/// Calls:  collective.
/// Throws: Error{MissingInput} when there is none; Error{BadData} when it is damaged or its tensors do not fit.
EvaluatedCheckpoint load_weights(const Weights& weights, const Plan& plan, const Program& program, Transport& transport,
                                 const std::string& named, const Logger& log);

}  // namespace vpp
