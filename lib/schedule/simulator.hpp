#pragma once
// The simulator: when every action of a lowered schedule starts and ends, given what each costs.
// Compute occupies its rank; transfers do not (they run beside compute), they only delay who waits for them.
#include <map>
#include <vector>

#include "schedule/schedule.hpp"

namespace vpp {

/// What one stage costs for one microbatch.
struct StageCosts {
    double forward_ms = 1;          ///< F
    double backward_ms = 2;         ///< B
    double input_gradient_ms = 1;   ///< I
    double weight_gradient_ms = 1;  ///< W

    /// Zero for what does not compute.
    double of(ActionKind kind) const;
};

/// The costs of a whole schedule. The default is unit costs: F = I = W = 1, B = 2, free transfers.
struct ScheduleCosts {
    std::vector<StageCosts> stages;     ///< by stage; empty = unit costs for all
    std::map<int, double> transfer_ms;  ///< by edge id, from SEND to the end of RECV; absent = 0

    StageCosts of_stage(int stage) const;
};

struct ActionTime {
    double start_ms = 0;
    double end_ms = 0;
};

struct Simulation {
    std::vector<std::vector<ActionTime>> times;  ///< beside Schedule::actions; a RECV lasts as long as its rank waits
    std::vector<double> busy_ms;                 ///< per rank: the sum of its computing actions
    double makespan_ms = 0;                      ///< end of the last action; what a step with a barrier costs
    double span_ms = 0;                          ///< largest time of a rank from its first start to its last end

    /// The idle part of P x makespan, 0 to 1: (cost - mean busy time) / cost.
    double bubble_rate() const;
    /// The same of P x span; for comparison with papers only.
    double span_bubble_rate() const;
};

/// Requires: a schedule that check_schedule has proved; costs not negative and, if given, for every stage.
/// Throws:   Error{Bug} otherwise.
Simulation simulate(const Schedule& lowered, const ScheduleCosts& costs = {});

}  // namespace vpp
