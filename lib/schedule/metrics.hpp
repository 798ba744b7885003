#pragma once
// The figures of a simulated schedule as people compare them: times in the unit that the costs were given in, memory in
// activations of a microbatch on a full rank. Letters: P ranks, v stages per rank, M microbatches.
#include <cstdint>
#include <string>
#include <vector>

#include "schedule/simulator.hpp"

namespace vpp {

struct RankMetrics {
    double busy = 0;              ///< its computing actions
    double idle = 0;              ///< makespan - busy
    double first_start = 0;       ///< of its first computing action
    double last_end = 0;          ///< of its last computing action
    double peak_activations = 0;  ///< stage activations held at once / the stages of the rank
    int num_stages = 0;
    int64_t num_sends = 0;
};

/// work = what the ranks are busy, divided by P; with even stages M (F + I + W), less what overlapping pairs save.
struct ScheduleMetrics {
    std::string schedule;
    int num_ranks = 1;
    int stages_per_rank = 1;  ///< where ranks differ, the largest
    int num_microbatches = 1;
    double makespan = 0;  ///< end of the last action: what a step with a barrier costs
    double span = 0;      ///< largest time of a rank from its first start to its last end; to compare with papers
    double bubble_makespan = 0;  ///< (makespan - work) / makespan
    double bubble_span = 0;      ///< (span - work) / span
    int64_t num_messages = 0;    ///< between ranks, of a step
    std::vector<RankMetrics> ranks;

    /// The largest of the ranks' peaks.
    double peak_activations() const;
};

/// Requires: as simulate.
ScheduleMetrics measure_schedule(const Schedule& lowered, const ScheduleCosts& costs = {});

}  // namespace vpp
