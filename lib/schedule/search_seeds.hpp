#pragma once
// Where order search starts: every schedule of the registry that takes a size and fits a memory limit, and plain lists.
#include <optional>
#include <string>
#include <vector>

#include "schedule/order_graph.hpp"
#include "schedule/request.hpp"
#include "schedule/schedule.hpp"

namespace vpp {

struct SearchSeed {
    Schedule schedule;
    std::string origin;     ///< the generator and what it was given
    Ticks cost = 0;         ///< makespan or span, simulated over a model without skips
    bool generated = true;  ///< by a row of the registry; else a plain list (list_order.hpp)
};

struct SeedRequest {
    ScheduleRequest schedule;  ///< memory_limit: none = no limit
    SearchObjective objective = SearchObjective::Makespan;
    bool split_backward = true;  ///< schedules with I and W count too
};

/// The stage activations that a rank may hold: all of them without a limit.
int most_held(const ScheduleSize& size, const std::optional<double>& memory_limit);

/// Tries every row of schedule_kinds() that trains: group sizes P, 2P, M for loop placement with several stages
/// (unless the request has one); with and without the limit as an input, and without a limit also with 2P and M, since
/// some generators use what they get. Rows that refuse (Error{Plan}) are left out; so is what holds more than the
/// limit. Last come the plain lists of both placements, which fit any limit that can be met. No two seeds have the same
/// lists.
/// Throws: Error{Plan} when the limit is below 1: no schedule holds less than one microbatch on a rank.
std::vector<SearchSeed> find_seeds(const SeedRequest& request);

/// The same lists with I and W, one behind the other, for each B, and pairs run one after the other.
Schedule split_all(const Schedule& schedule);

}  // namespace vpp
