#pragma once
// The registry of generated schedules: one row for each (generators.cpp), one file for each family. A generator makes
// the computing actions only; transfers are added by lowering (schedule/lowering.hpp), which knows the edges.
#include <string>
#include <vector>

#include "schedule/request.hpp"
#include "schedule/schedule.hpp"

namespace vpp {

/// One row of the registry.
struct ScheduleKind {
    const char* name;     ///< the plan's schedule_type
    const char* summary;  ///< one line for `vpp schedule list`
    Schedule (*make)(const ScheduleRequest&);
    int fewest_per_rank = 1;  ///< v
    int most_per_rank = 1;
    bool splits_backward = false;  ///< has I and W
    bool uses_costs = false;       ///< other lists at other costs and memory limits
    bool trains = true;            ///< false: evaluation's
    const char* same_as = "";      ///< another spelling of this one

    bool is_other_spelling() const { return *same_as != '\0'; }
};

constexpr int kAnyPerRank = 1 << 20;

/// All rows, in the order in which they are listed.
const std::vector<ScheduleKind>& schedule_kinds();

/// The row of that name, or nullptr.
const ScheduleKind* find_schedule_kind(const std::string& name);

/// The values of the plan key schedule_type that the engine can run, other spellings included.
std::vector<std::string> schedule_names();

/// The schedule with that name; `FORWARD_ONLY`, the schedule of evaluation, is known here too.
/// Throws: Error{Plan} for an unknown name (with did-you-mean) and for numbers that the schedule cannot take, naming
///         the nearest valid ones.
Schedule make_schedule(const std::string& name, const ScheduleRequest& request);
/// The same at unit costs.
Schedule make_schedule(const std::string& name, int num_ranks, int stages_per_rank, int num_microbatches);

}  // namespace vpp
