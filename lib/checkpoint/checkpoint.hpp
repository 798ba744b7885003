#pragma once
// Checkpoints of a run folder: <run>/checkpoints/step-00000050/ with one safetensors shard per writer and a manifest.
// A checkpoint is visible only under its final name, after everything in it was fsynced; the newest one whose checksums
// hold is the one that is resumed. Nothing in the format names a rank, a stage or a replica but the shards' file names.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "base/tensor_bytes.hpp"
#include "checkpoint/stop_point.hpp"

namespace vpp {

/// What a shard is, as its writer reports it to the one who commits.
struct ShardRecord {
    std::string file;  ///< plain name, "shard-00002.safetensors"
    uint64_t size_bytes = 0;
    Digest digest;  ///< XXH3-128 of the file
};

/// The fact that holds the validation loss after the checkpoint's step, as a decimal number.
inline constexpr const char* kValidationLoss = "validation_loss";

/// Everything about a checkpoint that is not tensors. Facts are compared on resume; the engine decides which refuse.
struct CheckpointState {
    int64_t step = 0;     ///< finished updates
    int64_t samples = 0;  ///< samples consumed: position in the data order
    uint64_t seed = 0;
    std::string plan;                          ///< resolved plan text
    std::map<std::string, std::string> facts;  ///< "model", "data", "threads", "torch", "cpu_capability", ...
};

struct Manifest {
    int format_version = 1;
    std::string save_id;  ///< the same in the manifest and in every shard's metadata
    CheckpointState state;
    std::vector<ShardRecord> shards;
};

/// A manifest that another vpp wrote, in a version of the format that this one does not know.
class UnknownVersion : public Error {
    using Error::Error;
};

/// Why a checkpoint cannot be resumed.
struct CheckpointDamage {
    std::string text;  ///< empty: it can
    ErrorKind kind = ErrorKind::BadData;
    /// It may well be whole, so that no older one may silently take its place: the disk cannot be read, another vpp
    /// wrote it, or it is elsewhere and a link leads there.
    bool bars_older = false;

    bool empty() const { return text.empty(); }
};

/// What an error met in reading a checkpoint says of it.  Throws it on where only a bug brings it about.
CheckpointDamage damage_told_by(const Error& error);

/// Ends a search for the newest checkpoint. Requires: damage.bars_older.
[[noreturn]] void refuse_older(const CheckpointDamage& damage);

/// The folder of checkpoints of one run: finds, verifies, writes, prunes. Used by one process at a time for commits;
/// all ranks may write shards and read. Invariant: once a checkpoint was committed there is at every moment a whole one
/// under a name that list() knows, also while a save of the same step replaces it: the old one waits as
/// "step-00000050.old" until the new one is durable. A process that dies anywhere leaves either the old or the new one
/// newest; what else it leaves, the next begin removes. A save that fails throws and leaves the committed checkpoints
/// as they were.
class CheckpointStore {
  public:
    /// `stop` is called at each stop point: after every write, fsync and rename; for tests.
    explicit CheckpointStore(std::filesystem::path run_folder, StopHook stop = {});

    /// A fresh temporary folder for a save of that step; removes left-overs of dead saves and settles a replacement
    /// that was cut off: of "step-N.old" and "step-N" the one that verifies stays, the new one when both do; when none
    /// does, both stay: they may be parts (see settle), or are for a person to judge. Requires: save_id is 1 to 64
    /// letters, digits, '-', '_', and new for every save; no other save is under way. Throws: Error{Output} for a place
    /// where no folder can be made, Error{Io} where the system fails to. Calls: one rank; stop points begin.*.
    std::filesystem::path begin(int64_t step, const std::string& save_id);
    /// Writes one shard into the temporary folder, fsynced.
    /// Throws: Error{Output} when the folder of begin cannot be seen from here, Error{Io} when a write fails.
    /// Calls:  every writer, each with its own number, after begin; stop points shard.*.
    ShardRecord write_shard(int64_t step, const std::string& save_id, int writer,
                            const std::vector<TensorBytes>& tensors);
    /// Writes the manifest, fsyncs, renames into place.
    /// Throws: Error{Output} when the temporary folder does not hold exactly these shards, Error{Io}.
    /// Calls:  the rank that began, after all shards are written; stop points manifest.*, commit.*, discard.*.
    std::filesystem::path commit(const std::string& save_id, const CheckpointState& state,
                                 std::vector<ShardRecord> shards);
    /// The halves of a commit, for a save whose shards lie in several run folders: publish in each, and only when all
    /// have, confirm in each; else withdraw in each. publish writes the same manifest and demands that exactly the
    /// shards `here` lie in this folder; a checkpoint of that step that was there stays as "step-N.old" until confirm.
    /// Throws: as commit.
    /// Calls:  the rank that began; stop points as of commit.
    std::filesystem::path publish(const Manifest& manifest, const std::vector<ShardRecord>& here);
    void confirm(int64_t step);
    /// Undoes begin and publish, as far as they came: what was there before is there again.
    /// Throws: Error{Io}.
    void withdraw(int64_t step, const std::string& save_id);
    /// Of "step-N" and "step-N.old" the one of that save stays, under the first name; when neither is of that save,
    /// they are set aside. For the checkpoint that a job has chosen from what all its run folders hold. Returns the new
    /// places of what was set aside.
    /// Throws: Error{Output, Io}.
    /// Calls:  one rank, before the first save; stop points discard.*, begin.*.
    std::vector<std::filesystem::path> settle(int64_t step, const std::string& save_id);

    /// Removes what a save that failed has left; what cannot be removed now, the next begin removes.
    /// Calls:  the rank that began.
    void abandon(int64_t step, const std::string& save_id) noexcept;
    /// Deletes all but the newest `keep` checkpoints (through a trash name), 0 keeps all; those of every
    /// `keep_every`-th step stay, 0: of none, and the `keep_best` of the lowest validation loss (kValidationLoss among
    /// their facts; the older one of equals). Never deletes the newest, nor the last one that this object committed
    /// (which is not the newest after a resume from an older step).
    /// Throws: Error{Io}.
    /// Calls:  one rank, after commit; stop points discard.*.
    void prune(int keep, int64_t keep_every = 0, int keep_best = 0);

    /// What a save does besides saving, where one was cut short behind its commit and no other comes: left-overs are
    /// removed, and prune.
    /// Throws: Error{Io}.
    /// Calls:  one rank, when no save is under way and the newest checkpoint is verified; stop points begin.*,
    /// discard.*.
    void tidy(int keep, int64_t keep_every = 0, int keep_best = 0);

    /// Deletes one checkpoint, through a trash name.
    /// Throws: Error{Io}.
    /// Calls:  one rank; stop points discard.*. Requires: it is one of list().
    void remove(const std::filesystem::path& checkpoint);
    /// Removes what dead saves and deletions left, and settles a replacement that was cut off, where it is of
    /// `last_step` or an earlier one.
    /// Throws: Error{Io}.
    /// Calls:  one rank, while no save is under way; stop points begin.* and discard.*.
    void remove_left_overs(int64_t last_step = std::numeric_limits<int64_t>::max());

    /// Moves checkpoints of later steps than `step` to <run>/set-aside (to <run>/checkpoints/set-aside where
    /// checkpoints are on a disk of their own), under a name that is free there: a run that goes on from `step` is
    /// another branch, and its own saves must not be mixed with theirs. Returns the new places.
    /// Throws: Error{Output, Io}.
    /// Calls:  one rank, before the first save.
    std::vector<std::filesystem::path> set_aside_after(int64_t step);

    /// Why a checkpoint cannot be resumed; empty when it can. Under a step's name it must hold that step. Reads every
    /// byte, or without `read_all` only what check_files reads.
    static CheckpointDamage damage(const std::filesystem::path& checkpoint, bool read_all = true,
                                   const StopHook& stop = {});
    /// The same of one of entries(): what is no folder counts for nothing, be it a link to a whole checkpoint, whose
    /// place no save could take.
    static CheckpointDamage damage_of_entry(const std::filesystem::path& entry);
    /// A folder of the disk that saves go to: the run folder, or <run>/checkpoints where that is on another disk.
    std::filesystem::path disk() const;
    /// Whether a save has begun here and not ended; it may still be under way, or be dead.
    bool is_unfinished(int64_t step, const std::string& save_id) const;
    /// Where the checkpoint of a step lies, or would.
    std::filesystem::path place_of(int64_t step) const;

    /// Folders of committed checkpoints, newest step first; not verified.
    std::vector<std::filesystem::path> list() const;
    /// The same, with what has a checkpoint's name and is no folder.
    std::vector<std::filesystem::path> entries() const;
    /// The newest checkpoint that verifies; what was skipped, and why, is appended to `skipped`.
    /// Throws: Error{Io} for a newer one that the disk does not give, Error{BadData} for one of an unknown version and
    ///         for one that is no folder.
    std::optional<std::filesystem::path> newest_verified(std::vector<std::string>& skipped) const;

  private:
    void settle_replaced(int64_t step);
    void restore_replaced(int64_t step);
    std::vector<std::filesystem::path> set_aside(const std::function<bool(int64_t step)>& is_meant);
    void discard(const std::filesystem::path& checkpoint);

    std::filesystem::path folder_;
    StopHook stop_;
    std::optional<int64_t> last_committed_;
};

/// The steps of the `count` checkpoints with the lowest validation loss; fewer when fewer have one.
std::set<int64_t> best_steps(const std::vector<std::filesystem::path>& checkpoints, size_t count);

/// A shard of the manifest as its folder has it.
struct ShardState {
    bool is_there = false;
    std::string problem;        ///< empty: every byte is right
    bool may_be_whole = false;  ///< with a problem: the disk does not give it
};

/// A checkpoint opened for reading: manifest read and its own checksum compared; shards mapped on demand.
/// Opening a shard checks its size, its form and its save id; only verify reads every byte.
class CheckpointReader {
  public:
    /// Throws Error{MissingInput, BadData}; Error{Refused} for names or links that lead out of the folder.
    explicit CheckpointReader(const std::filesystem::path& folder);
    /// The same of a folder that holds a part of the shards: only these are looked at, by all that follows, and the
    /// others may be missing. Without this every call below but manifest and shard_states asks for all of them.
    CheckpointReader(const std::filesystem::path& folder, std::set<std::string> shards);
    ~CheckpointReader();
    CheckpointReader(CheckpointReader&&) noexcept;
    const Manifest& manifest() const;
    /// Whether shards of the manifest are not in the folder: other hosts may have them.  Throws Error{Io}.
    bool lacks_shards() const;
    /// Checks the exact list of files, sizes, checksums and save ids. `stop` is called between the pieces that are
    /// read. Throws Error{BadData} naming file and reason, Error{Io} for a shard that the disk does not give.
    void verify(const StopHook& stop = {}) const;
    /// The same without the checksums of the shards, so that not every byte is read.
    void check_files() const;
    /// For a folder that may hold a part: each shard of the manifest, in its order; reads every byte.
    /// Throws Error{BadData} when the folder holds what the manifest does not list.
    std::vector<ShardState> shard_states() const;
    /// Whether a tensor is there.
    bool contains(const std::string& name) const;
    /// Throws Error{BadData} when it is missing or damaged. Bytes live as long as the reader.
    TensorBytes tensor(const std::string& name) const;
    /// The same, and throws Error{BadData} naming both when it has another dtype or shape than expected.
    TensorBytes tensor(const std::string& name, DType dtype, const std::vector<int64_t>& shape) const;
    /// In order of name.
    std::vector<std::string> names() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace vpp
