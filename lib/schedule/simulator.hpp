#pragma once
// The simulator: when every action of a lowered schedule starts and ends, given what each costs.
// Compute occupies its rank; transfers do not (they run beside compute), they only delay who waits for them. Messages
// from one rank to another occupy their channel one after the other, in the order in which they are sent, each for
// ScheduleCosts::occupied; their latencies are beside each other.
#include <vector>

#include "schedule/costs.hpp"
#include "schedule/schedule.hpp"

namespace vpp {

struct ActionTime {
    Ticks start = 0;
    Ticks end = 0;
};

struct Simulation {
    std::vector<std::vector<ActionTime>> times;  ///< beside Schedule::actions; a RECV lasts as long as its rank waits
    std::vector<Ticks> busy;                     ///< per rank: the sum of its computing actions
    Ticks makespan = 0;                          ///< end of the last action; what a step with a barrier costs
    Ticks span = 0;                              ///< largest time of a rank from its first start to its last end

    /// The idle part of P x makespan, 0 to 1: (cost - mean busy time) / cost.
    double bubble_rate() const;
    /// The same of P x span; for comparison with papers only.
    double span_bubble_rate() const;
};

/// Requires: a schedule that check_schedule has proved; costs not negative and, if given, for every stage.
/// Throws:   Error{Bug} otherwise.
Simulation simulate(const Schedule& lowered, const ScheduleCosts& costs = {});

}  // namespace vpp
