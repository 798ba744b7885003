#pragma once
// pipeline.memory_limit at work: what a limit means for generators and the search, and whether a schedule keeps to it.
//
// A number counts microbatches: stage activations from F to B or W, over the stages of a rank. Bytes are what inspect
// shows as "in flight" (program/activation_memory.hpp): with what I keeps for W and the gradients that a backward works
// with. Messages and the sums of weight gradients come on top.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "program/activation_memory.hpp"
#include "schedule/schedule.hpp"
#include "schedule/size.hpp"

namespace vpp {

/// The loosest limit that generators may be given, in activations of a microbatch on a full rank; none = no limit.
/// Bytes are divided by what the fullest rank keeps of one microbatch from its F to its backward, in the placement,
/// loop or v, in which that is more; it is never below 1. What else bytes count is not in it: see within_limit.
/// Requires: memory of as many stages as `size` has.
/// Throws:   Error{Plan} at pipeline.memory_limit when the bytes are less than one microbatch needs in either
///           placement, were it alone and its backward whole.
std::optional<double> activation_limit(const Plan& plan, const ActivationMemory& memory, const ScheduleSize& size);

/// A limit with which any order that counts so many activations keeps to the bytes; none where not even one does, and
/// where the plan's limit is none in bytes.
std::optional<double> safe_limit(const Plan& plan, const ActivationMemory& memory, const ScheduleSize& size,
                                 bool with_halves);

/// The order that holds least: each microbatch goes through all stages and back before the next one begins. It keeps to
/// every limit that activation_limit takes, in one of the placements.
Schedule one_at_a_time(int num_ranks, const std::vector<int>& rank_of_stage, int num_microbatches);

bool keeps_to_limit(const Plan& plan, const Schedule& schedule, const ActivationMemory& memory);

/// What `make` gives with the loosest limit, a number of activations, with which it keeps to the plan's limit; where
/// there is none, with a limit of one.
/// Requires: `make` gives the schedule as it will run.
/// Throws:   what activation_limit and `make` throw.
Schedule within_limit(const Plan& plan, const ActivationMemory& memory, const ScheduleSize& size,
                      const std::function<Schedule(std::optional<double>)>& make);

/// A schedule that was tried and keeps to the limit.
struct FittingSchedule {
    std::string name;
    int64_t bytes = 0;  ///< of the fullest rank
};

/// Generators that do not look at the limit may be above it, and tied weights make activations wait for their W
/// (schedule/tied_order.hpp). A limit in bytes is compared with the bytes of each rank.
/// Requires: the schedule as it will run, with tied weights in the order of order_tied. `find_fitting` is called for
///           the message alone; it may be empty.
/// Throws:   Error{Plan} at pipeline.memory_limit naming the peak and what fits, or as activation_limit does.
void check_activations(const Plan& plan, const Schedule& schedule, const ActivationMemory& memory,
                       const std::function<std::vector<FittingSchedule>()>& find_fitting);

}  // namespace vpp
