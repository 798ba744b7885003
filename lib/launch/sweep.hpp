#pragma once
// The runs of a sweep, one after the other: what is finished is passed over, a signal ends it, a failure does not.
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace vpp {

/// How the job of one run ended.
struct SweepJobEnd {
    int code = 0;             ///< one of vpp's own (launch/job_end.hpp)
    bool stop_asked = false;  ///< a signal to this process asked for the end
};

/// The world as a sweep needs it; runs by their place.
struct SweepHooks {
    std::function<bool(size_t run)> is_finished;
    std::function<SweepJobEnd(size_t run)> run;
    std::function<bool()> is_stop_asked;  ///< between two runs
    std::function<void(const std::string& text)> say;
};

struct SweepEnd {
    int code = 0;
    std::vector<std::string> states;  ///< of each run: "failed with 79"; empty: its folder tells
};

/// Runs what is not finished. A run that fails does not keep the others from running: what all of them share was
/// checked before the first one, so what is left (a model that cannot be cut that way, a loss that is not finite, a
/// rank lost) may be its own, and what is not costs seconds. Only the command line (2), which the settings do not
/// change, ends all. Returns the code of the first that failed; 85 or 130 when a signal has ended the sweep, since it
/// goes on from there.
SweepEnd run_sweep(const std::vector<std::string>& folders, const SweepHooks& hooks);

}  // namespace vpp
