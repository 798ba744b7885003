#pragma once
// What the exit code of mpirun means in vpp's own codes. mpirun passes on the code of the first rank that fails, but a
// rank that is killed shows as 128 + signal, and its own troubles as 1 and codes that say nothing.
#include <optional>
#include <string>

#include "launch/child.hpp"

namespace vpp {

/// What is known when mpirun has ended.
struct JobEnd {
    ChildEnd child;
    bool has_begun = false;                  ///< the run folder shows that the ranks have worked since the start
    bool is_saved = false;                   ///< nothing is lost: the newest step is in a checkpoint, or there is none
    std::optional<int> told = std::nullopt;  ///< the code that a rank has told in the run folder
    std::string resume = "auto";             ///< the plan's checkpoint.resume
};

struct Verdict {
    int code = 0;
    std::string text;  ///< a sentence where the ranks cannot have said it themselves; else empty
};

/// Whether only a look at mpirun tells whether ranks were started at all (what a trial of it then says goes to
/// `judge`).
bool needs_trial(const JobEnd& end);

/// `trouble` is what mpirun says against starting these ranks, when it was asked and does.
Verdict judge(const JobEnd& end, const std::optional<std::string>& trouble = std::nullopt);

}  // namespace vpp
