#pragma once
// The training loop: step, evaluate, save, report, from where the newest checkpoint stands to the last step.
#include "base/log.hpp"
#include "checkpoint/checkpoint.hpp"
#include "engine/engine.hpp"
#include "engine/run_folders.hpp"
#include "report/event.hpp"
#include "report/profile_steps.hpp"

namespace vpp {

/// Steps to be profiled (engine/profiler.hpp), into <run>/profile.
struct ProfileRequest {
    ProfileSteps steps;
    std::function<void(const std::string&)> show;  ///< gets the drawing of a step, on rank 0
};

struct TrainOptions {
    Reporter* reporter = nullptr;  ///< rank 0's; null elsewhere
    Logger log;
    bool ranks_exceed_cores = false;  ///< waiting then says nothing about the schedule
    /// Called on every rank before the first step with the last step of this run that the run folder may tell of: 0
    /// from the start, -1 where it goes on from another run folder. Not called where nothing follows a checkpoint that
    /// the plan names: the run folder then stays as it is.
    std::function<void(int64_t step)> resumed;
    /// Asked on every rank between steps and during evaluations; a yes on any rank saves and stops on all.
    StopRequest stop_request = [] { return false; };
    StopHook stop_point = {};                    ///< of saves; for tests
    double retry_pause_seconds = 5;              ///< behind the first failure of the last save, with each one longer
    RunFolders folders = {};                     ///< what run.dir means on the ranks
    std::optional<ProfileRequest> profile = {};  ///< the same on all ranks
};

/// What a run came to.
struct TrainResult {
    int64_t first_step = 0;  ///< updates that were done before
    int64_t last_step = 0;
    std::filesystem::path checkpoint;  ///< of the last step; empty when nothing was left to do
    bool stopped = false;              ///< before the last step, because a rank was asked to
};

/// Calls:  collective.
/// Throws: what the engine, the store and the transport throw; a checkpoint is never older than the last save.
TrainResult train(Engine& engine, const Plan& plan, const Program& program, const TrainOptions& options);

}  // namespace vpp
