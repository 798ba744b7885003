#pragma once
// What a rank holds while it works through its list: in bytes, or in whatever unit the model is given.
#include <cstdint>
#include <map>
#include <vector>

#include "schedule/held_sends.hpp"
#include "schedule/schedule.hpp"
#include "schedule/simulator.hpp"

namespace vpp {

/// What one stage holds for one microbatch, and always. The default counts stage activations.
struct StageMemory {
    int64_t activation = 1;        ///< from F to B or W (forward-only: during F)
    int64_t weight_part = 1;       ///< the part of it that I leaves to W (A_W)
    int64_t gradient_buffer = 0;   ///< gradients that I keeps for W; B has them while it runs
    int64_t weight_gradient = 0;   ///< a result that waits for its turn: weight gradients are added in microbatch order
    int64_t sums = 0;              ///< of the weight gradients: from the first B or W on
    int64_t extra_in_forward = 0;  ///< while F runs
    int64_t extra_in_weight = 0;   ///< while W runs
    int64_t fixed = 0;             ///< weights, their gradients, optimizer state
};

struct MemoryModel {
    std::vector<StageMemory> stages;       ///< by stage; empty = the default for all
    std::map<int, int64_t> bytes_of_edge;  ///< by edge id, one microbatch; 0 where it is not named
    MessageBuffers buffers{};              ///< by default from RECV on

    StageMemory of_stage(int stage) const { return stages.empty() ? StageMemory{} : stages.at(size_t(stage)); }
    int64_t of_edge(int edge) const;
};

/// What every rank holds during each of its actions, the fixed part included. Beside StageMemory: a received value from
/// its RECV to the end of its F (from then on it is part of the activation), a received gradient from its RECV to the
/// end of its B, I or W, and a gradient handed over on the rank from the end of what made it to the end of what took
/// it. The halves of a pair hold what both need. With a `simulation`, a message takes its buffer when it is sent, if
/// that is before its RECV: receives are posted ahead. Requires: a schedule that check_schedule has proved; edges as in
/// routes_of; stages of the model, if given, for all.
std::vector<std::vector<int64_t>> memory_by_action(const Schedule& lowered, const std::vector<ScheduleEdge>& edges,
                                                   const MemoryModel& model = {},
                                                   const Simulation* simulation = nullptr);

/// The largest of these for every rank. With the default model that is peak_in_flight, where pairs begin with F.
std::vector<int64_t> peak_memory(const Schedule& lowered, const std::vector<ScheduleEdge>& edges,
                                 const MemoryModel& model = {}, const Simulation* simulation = nullptr);

}  // namespace vpp
