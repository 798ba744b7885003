#pragma once
// What a dry run shows: one microbatch went through all stages on real ranks, forward and backward.
#include <cstdint>
#include <string>
#include <vector>

#include "report/event.hpp"

namespace vpp {

struct RehearsalReport {
    struct Edge {
        int from = 0;  ///< stage
        int to = 0;    ///< stage
        std::string name;
        std::string dtype;
        std::vector<int64_t> shape;  ///< of the tensor that crossed
        int64_t bytes = 0;
    };
    struct Rank {
        int64_t state_bytes = 0;       ///< held before the first action: weights and buffers
        int64_t full_state_bytes = 0;  ///< of what the rank saves after its first update: optimizer state is in it
        int64_t activation_bytes = 0;  ///< most beside the state, for this one microbatch
        /// The same for a whole step, simulated with what the actions took (MemoryEvent::Rank).
        int64_t least_simulated_bytes = 0;
        int64_t most_simulated_bytes = 0;
        int64_t process_bytes = 0;  ///< peak resident
    };
    int64_t microbatch_size = 0;  ///< samples
    int num_passes = 0;           ///< the times are those of the quickest
    double loss = 0;              ///< of the microbatch
    std::string schedule;
    int num_microbatches = 0;             ///< of a step
    std::vector<StageTimesEvent> stages;  ///< of one microbatch
    std::vector<Edge> edges;
    std::vector<Rank> ranks;
    double step_ms = 0;           ///< the actions of a step, simulated with these times
    double bubble = 0;            ///< of it, 0 to 1
    bool are_waits_known = true;  ///< false where ranks exceed cores: times are then too long
};

/// Lines with their ends; of 80 columns, but for long names.
std::string rehearsal_text(const RehearsalReport& report);

}  // namespace vpp
