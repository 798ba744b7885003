#pragma once
// Whether a job that has lost a rank is started again: at most so often, and never twice without a new step, so that a
// job that cannot live does not take turns for ever.
#include <cstdint>
#include <string>

namespace vpp {

/// What has been started again so far.
struct RestartHistory {
    int restarts = 0;
    int64_t newest_step = -1;  ///< that the run had reached at the last restart
};

struct RestartChoice {
    bool restart = false;
    std::string text;  ///< one line for the person; empty where there is nothing to choose
};

/// `code` is vpp's own (launch/job_end.hpp); `newest_step` is -1 where the run folder tells none.
/// Restarts belong to code 75 alone: any other one says that the same would happen again, or that somebody meant it.
/// `resume` is the plan's checkpoint.resume.
RestartChoice choose_restart(int code, int64_t newest_step, const RestartHistory& history, int max_restarts,
                             const std::string& resume = "auto");

}  // namespace vpp
