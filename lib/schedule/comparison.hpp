#pragma once
// All generated schedules side by side, for one number of ranks and microbatches, the same costs and memory.
#include <optional>
#include <string>
#include <vector>

#include "schedule/metrics.hpp"

namespace vpp {

struct ComparisonRequest {
    int num_ranks = 1;
    int num_microbatches = 1;
    /// What a schedule gets that takes any number; the others get the nearest that they take. Without it 2, and 1 where
    /// 2 does not fit.
    std::optional<int> stages_per_rank = {};
    std::string costs = {};                    ///< as parse_costs
    std::optional<double> memory_limit = {};   ///< as ScheduleRequest
    std::optional<int> interleave_group = {};  ///< as ScheduleRequest
};

struct ScheduleComparison {
    struct LeftOut {
        std::string name;
        std::string reason;
    };
    std::vector<ScheduleMetrics> rows;  ///< in the order of the registry
    std::vector<LeftOut> left_out;      ///< cannot be made from these numbers, or needs more memory
};

/// Every schedule of the registry that trains, once (no other spellings), lowered over a model without skips, proved
/// and simulated. Throws: Error{CommandLine} for costs that fit none of them.
ScheduleComparison compare_schedules(const ComparisonRequest& request);

}  // namespace vpp
