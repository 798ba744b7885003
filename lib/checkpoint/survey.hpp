#pragma once
// What lies in a run folder: its checkpoints and whether each is whole, what was set aside, what dead saves left, and
// which checkpoints a person's `vpp checkpoint prune` deletes. Nothing here changes anything.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"

namespace vpp {

/// A path that a person gave, and what it turned out to be.
struct CheckpointPlace {
    std::filesystem::path run;         ///< the run folder; empty for a checkpoint that lies in none
    std::filesystem::path checkpoint;  ///< empty: the whole run is meant
};

/// A run folder, its `checkpoints` folder, or one checkpoint.
/// Throws: Error{MissingInput} when it is nothing of that, Error{Io}.
CheckpointPlace find_checkpoints(const std::filesystem::path& path);

/// Of the files in it, but not of folders below; of none where there is no such folder. Throws: Error{Io}.
uint64_t size_of_folder(const std::filesystem::path& folder);

/// Of all checkpoints of a run, and of what dead saves left beside them. Throws: Error{Io}.
uint64_t size_of_checkpoints(const std::filesystem::path& run);

/// One checkpoint as it lies there.
struct CheckpointSummary {
    std::filesystem::path folder;
    int64_t step = 0;                  ///< by its name
    uint64_t size_bytes = 0;           ///< of all files in it
    double age_seconds = 0;            ///< since its manifest was written, by the file's time; for people only
    std::optional<Manifest> manifest;  ///< when it can be read
    CheckpointDamage damage;           ///< empty when it is whole, as far as was looked
    bool is_part = false;              ///< shards of its manifest are missing: other hosts may have them
};

/// Looks at one checkpoint; with `read_all` every byte is compared with the checksums.
CheckpointSummary look_at_checkpoint(const std::filesystem::path& folder, bool read_all);

/// The same of one of CheckpointStore::entries().
CheckpointSummary look_at_entry(const std::filesystem::path& entry, bool read_all);

struct RunSurvey {
    std::vector<CheckpointSummary> checkpoints;     ///< newest first
    std::optional<size_t> resumed;                  ///< the one that a training would go on from; none: it refuses
    std::vector<std::filesystem::path> set_aside;   ///< moved out of the way by a resume from an older step
    std::vector<std::filesystem::path> left_overs;  ///< of dead saves and deletions, or of a save under way
};

/// Looks at all of a run.
/// Throws: Error{Io} when a folder cannot be listed.
RunSurvey survey_run(const std::filesystem::path& run, bool read_all);

/// What is deleted when only so many shall stay.
struct PrunePlan {
    std::vector<std::filesystem::path> kept, deleted;
    std::vector<std::string> damaged;  ///< they count for nothing, and are left for a person to judge
    size_t num_best = 0;               ///< how many `keep_best` keeps: those of them that have a validation loss
};

/// Of the checkpoints that verify keeps the newest `keep`, those of every `keep_every`-th step (0: of none), and the
/// `keep_best` of the lowest validation loss. So a run whose newest or best ones are damaged keeps good ones.
/// Requires: keep >= 1.
PrunePlan plan_prune(const CheckpointStore& store, int keep, int64_t keep_every, int keep_best = 0);

}  // namespace vpp
