#pragma once
// Checkpoints of a job whose ranks have several run folders (engine/run_folders.hpp): each folder holds the manifest
// and the shards of its own ranks. Which one all folders hold together, and how a shard comes to a rank that needs it.
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "checkpoint/checkpoint.hpp"
#include "comm/transport.hpp"
#include "engine/run_folders.hpp"

namespace vpp {

/// A checkpoint of which every shard is whole in some folder of the job; the same on every rank.
struct JobCheckpoint {
    struct Part {
        std::filesystem::path folder;  ///< where it lies in this run folder, or would
        bool is_there = false;         ///< with the same manifest
        std::vector<bool> holds;       ///< by shard of the manifest: here, every byte right
    };
    Manifest manifest;
    std::map<int, Part> parts;  ///< by keeper
};

/// The newest one; of two saves of a step the one that replaced the other. Each keeper verifies what its folder has.
/// What was skipped and why, folder by folder, goes to the log of rank 0; to `lost`, but for saves that never ended:
/// a job may be killed when some of its folders have committed one. Empty when there is none.
/// `store` is that of this rank's run folder.
/// Calls:  collective.
/// Throws: as CheckpointStore::newest_verified, on every rank.
std::optional<JobCheckpoint> find_newest(Transport& transport, const RunFolders& folders, const CheckpointStore& store,
                                         const Logger& log, std::vector<std::string>& lost);

/// The checkpoint of that name. `folders` are what its parent folder means on the ranks.
/// Calls:  collective.
/// Throws: Error{MissingInput} when it is nowhere, or a shard is, naming the shard and the hosts that were asked;
///         Error{BadData} for a damaged one that no folder has whole.
JobCheckpoint find_named(Transport& transport, const RunFolders& folders, const std::filesystem::path& folder);

/// Sends each folder the shards that hold what its ranks want and that it lacks, from a rank that has them, and opens
/// what this rank's folder then holds. `wanted` are names of tensors; those that no shard has are no error here.
/// Rank 0's log says what was sent.
/// Calls:  collective.
/// Throws: Error{BadData} for a shard that arrived damaged, Error{Output, Io} when a folder cannot take it.
CheckpointReader bring_shards(Transport& transport, const RunFolders& folders, JobCheckpoint& checkpoint,
                              const std::set<std::string>& wanted, const Logger& log);

}  // namespace vpp
