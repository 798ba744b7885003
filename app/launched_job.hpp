#pragma once
// A command on ranks that `vpp run` and `vpp sweep` start by mpirun and stay with until it ends.
#include <string>
#include <vector>

#include "launch/child.hpp"
#include "launch/mpirun_line.hpp"
#include "plan/plan.hpp"

namespace CLI {
class App;
}

namespace vpp {

/// Where ranks are started.
struct LaunchArguments {
    int ranks = 0;  ///< 0 = what the plan names
    std::string host, hostfile, interface;
};

/// `-n`, `--host`, `--hostfile`, `--interface`.
void add_launch_options(CLI::App& command, LaunchArguments& arguments);

/// Throws Error{CommandLine} where mpirun or srun has started this process; `command` as a person types it: "vpp run".
void check_not_under_mpirun(const std::string& command);

struct LaunchedJob {
    LaunchRequest request;
    Plan plan;
    StopManner manner = StopManner::Save;
};

/// The job of a command line, `words`: "train", "plan.toml", "--set", ...; its plan with everything that can be wrong
/// about it for so many ranks.
/// Throws: Error{CommandLine} for words that vpp would not take, what load_plan and resolve_plan throw.
LaunchedJob checked_job(const LaunchArguments& arguments, const std::vector<std::string>& words);

/// How it ended.
struct LaunchedEnd {
    int code = 0;                 ///< one of vpp's own
    bool stop_asked = false;      ///< a signal to this process asked for the end
    bool is_output_lost = false;  ///< its standard output did not all arrive
};

/// Starts the job, again after a lost rank where the plan says so, and waits for its end. `command` begins what is said
/// to the person.
/// Throws: Error{Mesh} when there is no mpirun.
LaunchedEnd run_launched_job(const LaunchedJob& job, const HostFacts& host, StopSignals& signals,
                             const std::string& command);

}  // namespace vpp
