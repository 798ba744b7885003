#pragma once
// What a generator is asked for.
#include <optional>

#include "schedule/costs.hpp"
#include "schedule/size.hpp"

namespace vpp {

/// Costs and limits are for the generators that look at them; the others make the same lists whatever they are.
struct ScheduleRequest {
    ScheduleSize size;
    ScheduleCosts costs = {};                  ///< empty stages = unit costs; else one entry a stage
    std::optional<double> memory_limit = {};   ///< most activations a rank may hold: of microbatches on a full rank
    std::optional<int> interleave_group = {};  ///< N, microbatches of a group; default: the schedule's own
};

}  // namespace vpp
