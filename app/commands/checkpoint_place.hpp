#pragma once
// What the argument of a `vpp checkpoint` command means.
#include "app/checkpoint_options.hpp"
#include "checkpoint/survey.hpp"

namespace vpp {

struct PlannedPlace : CheckpointPlace {
    std::string resume = "auto";  ///< checkpoint.resume of the plan
};

/// A folder as it is; of a plan its run folder.
PlannedPlace checkpoint_place(const CheckpointArguments& given);

/// "3 min", "2 h 07 min".
std::string age_text(double seconds);

}  // namespace vpp
