#pragma once
// What a plan's own facts mean on this host: its errors, what it has prepared, memory, disk, and what it goes on from.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "launch/disk_trial.hpp"
#include "launch/findings.hpp"

namespace vpp {

/// The error that train would end with.
Finding judge_error(const std::string& topic, const Error& error);

/// A plan without mistakes, resolved.
struct PlanFacts {
    std::string file;
    int ranks = 1, pp = 1, dp = 1;
    std::optional<int64_t> steps, epochs;  ///< one of them
    int64_t batch = 1;                     ///< samples
};

Finding judge_plan(const PlanFacts& facts);

/// What was made of a plan.
struct PreparedFacts {
    std::string model;  ///< its files
    int64_t ops = 0, parameters = 0, legal_cuts = 0;
    std::vector<std::string> warnings;
    std::string data;  ///< its kind
    int64_t samples = 0;
    std::optional<int64_t> validation_samples;
    std::string schedule;
    int stages = 1;
    double bubble = 0;  ///< share of a step, without transfers
};

/// Model, data and schedule, which are as they should be, and what the model's reader noted.
std::vector<Finding> judge_prepared(const PreparedFacts& facts);

/// Bytes of the ranks that run on this host.
struct MemoryNeed {
    int ranks = 1;
    int64_t state_bytes = 0;       ///< of all: weights, gradients, optimizer, buffers, copies for saving
    int64_t activation_bytes = 0;  ///< of all, at most
    int64_t program_bytes = 0;     ///< of each rank: the process itself
    int64_t fullest_bytes = 0;     ///< of the rank with most, at most
};

Finding judge_memory(const MemoryNeed& need, int64_t available_bytes);

/// The same where nobody knows which ranks run on this host: the fullest one may.
Finding judge_spread_memory(const MemoryNeed& need, int64_t available_bytes);

/// What saving asks of the disk.
struct SaveNeed {
    int64_t checkpoint_bytes = 0;  ///< 0: unknown
    int64_t keep = 1;              ///< checkpoints that stay
    int64_t kept = 0;              ///< that lie there already
};

Finding judge_disk(const DiskFacts& disk, const SaveNeed& need);

/// What a training would go on from.
struct ResumeFacts {
    std::string run, resume;       ///< run.dir and checkpoint.resume
    std::optional<int64_t> step;   ///< of the checkpoint that it would take; empty: none
    bool has_parts = false;        ///< checkpoints lie there whose other shards do not
    std::optional<int64_t> steps;  ///< of the training, where the plan says them
};

Finding judge_resume(const ResumeFacts& facts);

}  // namespace vpp
