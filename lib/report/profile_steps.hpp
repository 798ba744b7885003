#pragma once
// Which steps of a training are to be profiled: the value of `vpp train --profile`.
#include <cstdint>
#include <string>

namespace vpp {

/// "5": so many steps after the first two of a run, which are slower than any later one. "10..12": these steps.
struct ProfileSteps {
    int64_t first = 0;  ///< 0: behind the first two
    int64_t last = 0;   ///< or, where first is 0, how many
};

/// The steps [first, last], counted by finished updates.
struct StepRange {
    int64_t first = 0;
    int64_t last = -1;

    bool contains(int64_t step) const { return first <= step && step <= last; }
};

/// Each step of a profile is one file.
inline constexpr int64_t kMostProfiledSteps = 1000;

/// Throws: Error{CommandLine} for any other text, no steps, or too many.
ProfileSteps parse_profile_steps(const std::string& text);

/// For a run that has done `done` of `total` steps before. What lies behind its end is left out.
/// Throws: Error{CommandLine} when nothing is left, naming the steps that the run does.
StepRange profiled_steps(const ProfileSteps& wanted, int64_t done, int64_t total);

}  // namespace vpp
