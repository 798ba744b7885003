#pragma once
// The registry of generated schedules: one row for each (generators.cpp), one file for each family. A generator makes
// the computing actions only; transfers are added by lowering (schedule/lowering.hpp), which knows the edges.
#include <string>
#include <vector>

#include "schedule/schedule.hpp"

namespace vpp {

/// The values of the plan key schedule_type that train, other spellings included.
std::vector<std::string> schedule_names();

/// The schedule with that name; `FORWARD_ONLY`, the schedule of evaluation, is known here too.
/// Throws: Error{Plan} for an unknown name (with did-you-mean) and for numbers that the schedule cannot take, naming
/// the
///         nearest valid ones.
Schedule make_schedule(const std::string& name, int num_ranks, int stages_per_rank, int num_microbatches);

}  // namespace vpp
