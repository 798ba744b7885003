#pragma once
// What a generator is asked for.
#include <cstdint>
#include <optional>

#include "schedule/costs.hpp"
#include "schedule/size.hpp"

namespace vpp {

/// What a stage keeps of a microbatch, in any unit: `whole` from F on, of which I frees all but `until_weight`, and W
/// the rest. The default frees at W alone, as peak_in_flight counts. (Layers without a kept attention matrix come near
/// to it; with one .37 to .43 are kept.)
struct ActivationSize {
    int64_t whole = 1;
    int64_t until_weight = 1;
};

/// Costs and limits are for the generators that look at them; the others make the same lists whatever they are.
struct ScheduleRequest {
    ScheduleSize size;
    ScheduleCosts costs = {};                  ///< empty stages = unit costs; else one entry a stage
    std::optional<double> memory_limit = {};   ///< most activations a rank may hold: of microbatches on a full rank
    std::optional<int> interleave_group = {};  ///< N, microbatches of a group; default: the schedule's own
    ActivationSize activation = {};            ///< what I frees before W; for generators that say so
};

}  // namespace vpp
