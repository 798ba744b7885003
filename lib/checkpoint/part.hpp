#pragma once
// Checkpoints of a job whose hosts share no disk: each run folder holds the manifest and some of the shards. What one
// folder knows of them, and how what it lacks comes in. All calls are local.
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/file.hpp"
#include "checkpoint/checkpoint.hpp"

namespace vpp {

/// What one folder holds of a checkpoint.
struct CheckpointPart {
    std::filesystem::path folder;
    int64_t step = 0;
    bool replaced = false;             ///< it has the name "step-N.old"
    std::optional<Manifest> manifest;  ///< when it can be read
    CheckpointDamage damage;           ///< why it counts for nothing, without a manifest
};

/// Reads the manifest. A folder with a step's name must hold that step.
CheckpointPart look_at_part(const std::filesystem::path& folder);

/// Of all committed ones of a run folder, newest first.
std::vector<CheckpointPart> parts_of_run(const CheckpointStore& store);

/// A checkpoint's folder that holds the manifest and no shard yet; made under another name and renamed, durably.
/// Folders above it that are missing are made. Throws: Error{BadData} when something else has that name; Error{Output,
/// Io}.
void write_part(const std::filesystem::path& folder, const Manifest& manifest);

/// A shard on its way into a part. Until it is whole it has a name that the next save deletes.
class ArrivingShard {
  public:
    /// Requires: `folder` was made by a save or by write_part; the shard is one of its manifest.
    /// Throws:   Error{Io} when there is no room for it; Error{Output}.
    ArrivingShard(std::filesystem::path folder, ShardRecord shard);
    ~ArrivingShard();
    ArrivingShard(const ArrivingShard&) = delete;
    ArrivingShard& operator=(const ArrivingShard&) = delete;
    /// The next bytes.  Throws: Error{BadData} for more bytes than the shard has, Error{Io}.
    void add(std::span<const std::byte> bytes);
    /// Fsyncs and gives it its name, in place of a damaged one.
    /// Throws: Error{BadData} when size or digest is not that of the record, Error{Io}.
    void finish();

  private:
    std::filesystem::path folder_, temporary_;
    ShardRecord shard_;
    uint64_t size_bytes_ = 0;
    Hasher hasher_;
    std::optional<OutputFile> file_;
};

}  // namespace vpp
