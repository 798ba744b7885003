#pragma once
// Where order search starts: every schedule of the registry that takes a size and fits a memory limit.
#include <optional>
#include <string>
#include <vector>

#include "schedule/order_graph.hpp"
#include "schedule/request.hpp"
#include "schedule/schedule.hpp"

namespace vpp {

struct SearchSeed {
    Schedule schedule;
    std::string origin;  ///< the generator and what it was given
    Ticks cost = 0;      ///< makespan or span, simulated over a model without skips
};

struct SeedRequest {
    ScheduleRequest schedule;  ///< memory_limit: none = no limit
    SearchObjective objective = SearchObjective::Makespan;
    bool split_backward = true;  ///< schedules with I and W count too
};

struct FoundSeeds {
    std::vector<SearchSeed> fitting;        ///< in the order of the registry; no two have the same lists
    std::optional<double> smallest_memory;  ///< of those that do not fit: activations of a full rank
};

/// The stage activations that a rank may hold: all of them without a limit.
int most_held(const ScheduleSize& size, const std::optional<double>& memory_limit);

/// Tries every row of schedule_kinds() that trains: group sizes P, 2P, M for loop placement with several stages; with
/// and without the limit as an input, and without a limit also with 2P and M, since some generators use what they get.
/// Rows that refuse (Error{Plan}) are left out. Without `interleave_group` in the request only.
FoundSeeds find_seeds(const SeedRequest& request);

/// The same lists with I and W, one behind the other, for each B, and pairs run one after the other.
Schedule split_all(const Schedule& schedule);

}  // namespace vpp
