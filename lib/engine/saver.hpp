#pragma once
// Saves the state of an engine while training goes on. At a step border the state is copied; a thread of each rank
// writes its shard from the copy; when all ranks know that theirs is durable, a thread of rank 0 commits and prunes.
// Where ranks have run folders of their own, each folder's keeper makes the save's folder and commits there, the same
// manifest in each; what was there before goes, and older ones are pruned, only when all have committed.
// The threads call neither MPI nor LibTorch: what ranks tell each other, they tell in poll. With
// checkpoint.background = false there is no copy, and the caller waits.
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "checkpoint/checkpoint.hpp"
#include "engine/engine.hpp"
#include "engine/run_folders.hpp"
#include "engine/state_copy.hpp"

namespace vpp {

/// What became of a save; the same on every rank, but for the pause.
struct SaveResult {
    int64_t step = 0;
    std::filesystem::path folder;  ///< the checkpoint's, as rank 0 has it; empty when the save failed
    std::string problem;           ///< why it failed
    std::string note;              ///< what else went wrong: older checkpoints could not be deleted
    int64_t size_bytes = 0;        ///< of all shards
    double seconds = 0;            ///< from the start until it was durable
    double pause_seconds = 0;      ///< how long this rank did nothing else
};

class Saver {
  public:
    /// `stop` is called at the stop points of a save (checkpoint/stop_point.hpp), from the writing threads too.
    /// `folders` are what run.dir means on the ranks.
    /// Owns: borrows everything else.
    Saver(Engine& engine, const Plan& plan, const Program& program, StopHook stop = {}, RunFolders folders = {});
    ~Saver();

    /// Begins to save the state after `step` updates; `notes` join the facts of the checkpoint.
    /// Calls:    collective.
    /// Requires: no save is under way. Without checkpoint.background: finish is called before the next step.
    void start(int64_t step, std::map<std::string, std::string> notes = {});
    /// Whether a save is under way; the same on every rank.
    bool is_saving() const { return save_ != nullptr; }
    /// Looks how far the save is, without waiting for a disk. Its result when it has ended. A disk that is full or
    /// fails on any rank is a problem in the result: what was there before is as it was, and training may go on. Calls:
    /// collective. Throws: what else goes wrong, Error{Output} for a run folder that is not what `folders` said.
    std::optional<SaveResult> poll();
    /// Waits for the end of the save.
    /// Calls:    collective.
    /// Requires: a save is under way.
    /// Throws:   as poll; Error{RankLost} on a rank whose disk did nothing for run.deadline_floor_s.
    SaveResult finish();

  private:
    struct Save;
    struct Begun;
    struct Written;
    struct Committed;

    int rank() const { return engine_.transport().rank(); }
    bool is_keeper() const { return folders_.keeps(rank()); }
    void begin(uint64_t needed_bytes);
    void write();
    std::optional<SaveResult> look_at_folder();
    void look_at_shards();
    std::optional<SaveResult> look_at_commit();
    std::optional<Committed> all_committed();
    Manifest make_manifest(std::vector<ShardRecord> shards) const;
    void commit(std::vector<ShardRecord> shards, std::string problem);
    void end_commit();
    void check_disk_lives();

    Engine& engine_;
    const Plan& plan_;
    const Program& program_;
    RunFolders folders_;
    std::shared_ptr<std::atomic<uint64_t>> signs_of_life_;  ///< stop points that were reached
    std::shared_ptr<CheckpointStore> store_;                ///< the threads' too: one of them may outlive this object
    std::shared_ptr<StateCopy> state_;
    std::unique_ptr<Save> save_;
};

/// Saves and waits.  Calls: collective.  Throws: as Saver::finish.
SaveResult save_checkpoint(Engine& engine, const Plan& plan, const Program& program, int64_t step,
                           const RunFolders& folders = {});

}  // namespace vpp
