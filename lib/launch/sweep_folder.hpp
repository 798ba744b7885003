#pragma once
// What a run folder holds for a combination of a sweep: whether it is done, goes on, or belongs to something else.
#include <filesystem>
#include <string>

#include "report/settings.hpp"

namespace vpp {

enum class SweepProgress {
    Fresh,     ///< there is no run
    Begun,     ///< a run with these settings, which goes on from its newest checkpoint
    Finished,  ///< its last step is done and saved
    Other,     ///< a run with other settings; going on would train a mixture of both
};

struct SweepFolder {
    SweepProgress progress = SweepProgress::Fresh;
    std::string difference;  ///< of Other, the first setting: "optimizer.lr = 0.1, here 0.2"
};

/// Looks at a run folder for a run with these settings, those of a resolved plan. How long to train, where the run
/// lies, and what it saves and shows (train.steps, train.epochs, run, checkpoint, report) may differ: it goes on then.
/// A run whose plan.toml is missing or damaged counts as begun: its checkpoints know their settings.
SweepFolder look_at_sweep_folder(const std::filesystem::path& folder, const Settings& wanted);

}  // namespace vpp
