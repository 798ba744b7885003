#pragma once
// A job from its first start to the code that it ends with: start, judge, start again where that is right.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launch/child.hpp"
#include "launch/progress.hpp"
#include "report/run_end.hpp"

namespace vpp {

struct SupervisedJob {
    std::vector<std::string> line;  ///< mpirun's whole line
    StopManner manner = StopManner::Save;
    int max_restarts = 0;
    std::string resume = "auto";  ///< checkpoint.resume; what is started again goes on from its own checkpoints
};

/// The world as the supervisor needs it.
struct SupervisorHooks {
    std::function<ChildEnd(const std::vector<std::string>& line)> run;
    std::function<RunProgress()> look;                  ///< at the run folder
    std::function<std::optional<std::string>()> trial;  ///< why mpirun starts no such ranks; empty: it does
    std::function<void(const std::string& text)> say;   ///< a line for the person
    std::function<bool()> is_holder;                    ///< whether nobody has held the run folder since this job did
    std::function<std::optional<RunEnd>()> told;        ///< what the run folder says of its end
    std::function<void(const RunEnd& end)> keep;        ///< in the run folder, what no rank has lived to write there
    std::function<bool()> is_stop_asked;                ///< before a restart: waits until the ranks are gone
};

/// Returns the exit code, one of vpp's own.
int supervise(const SupervisedJob& job, const SupervisorHooks& hooks);

}  // namespace vpp
