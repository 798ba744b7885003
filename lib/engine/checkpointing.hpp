#pragma once
// From a checkpoint into an engine, or into the weights that are evaluated. engine/saver.hpp is the way there.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "checkpoint/checkpoint.hpp"
#include "engine/engine.hpp"
#include "engine/run_folders.hpp"

namespace vpp {

/// Fills the engine from the checkpoint that checkpoint.resume names and returns its state; empty when there is none,
/// then the weights are those of model.init_from, if the plan has it.
/// What was skipped, and what differs from the run that saved, goes to the log of rank 0.
/// `folders` are what run.dir means on the ranks. Where they are several, a checkpoint is what they hold together, and
/// shards come to the folders whose ranks need them (engine/job_checkpoint.hpp).
/// Calls:  collective. The keepers hold the locks of their folders.
/// Throws: Error{Refused} naming both values for another model, data, batch, seed or optimizer kind; Error{BadData}
///         when there are checkpoints and none of them is whole; as CheckpointStore::newest_verified.
std::optional<CheckpointState> resume_checkpoint(Engine& engine, const Plan& plan, const Program& program,
                                                 const CheckpointStore& store, const Logger& log,
                                                 const RunFolders& folders = {});

/// Where evaluated weights come from.
struct EvaluatedCheckpoint {
    std::filesystem::path folder;
    int64_t step = 0;
};

/// Fills the weights that a rank holds for evaluation from the checkpoint `named`, or from the newest of run.dir that
/// verifies; where the ranks do not share that folder, from what their folders hold together. What differs from the run
/// that saved is said in the log of rank 0. Calls:  collective. Throws: Error{MissingInput} when there is none;
/// Error{BadData} when it is damaged or its tensors do not fit.
EvaluatedCheckpoint load_weights(const Weights& weights, const Plan& plan, const Program& program, Transport& transport,
                                 const std::string& named, const Logger& log);

}  // namespace vpp
