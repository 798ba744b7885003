#pragma once
// A schedule: placement of stages on PP ranks and every rank's actions. Generators make the computing actions
// (schedule/generators.hpp), lowering adds the transfers (schedule/lowering.hpp), the checker proves the result
// (schedule/checker.hpp), the simulator gives times (schedule/simulator.hpp). All pure.
// Letters: P ranks, v stages per rank, S = P v stages, M microbatches.
#include <string>
#include <vector>

#include "schedule/action.hpp"

namespace vpp {

struct Schedule {
    std::string name;                ///< the plan's schedule_type
    int num_ranks = 1;               ///< P
    int num_microbatches = 1;        ///< M
    std::vector<int> rank_of_stage;  ///< S entries
    ActionLists actions;             ///< P lists
    bool forward_only = false;       ///< evaluation: F of every stage and microbatch, nothing else is computed

    int num_stages() const { return static_cast<int>(rank_of_stage.size()); }
    /// The stages of a rank, ascending.
    std::vector<int> stages_of(int rank) const;
    /// Whether any stage has I and W.
    bool divides_backward() const;
};

/// A value that goes from one stage to a later one, as far as schedules care. The gradient goes to `gradient_to`:
/// the last earlier stage that uses the value too, else its producer (DESIGN section 4).
struct ScheduleEdge {
    int id = 0;
    int producer = 0;  ///< stage
    int consumer = 0;  ///< stage, later than producer
    bool has_gradient = true;
    int gradient_to = 0;  ///< stage; meaningless without a gradient
    /// A tied parameter, owned by `producer`: no value travels. Its gradient goes like that of a value, but W (or B) of
    /// the consumer gives it and W (or B) of gradient_to waits for it.
    bool tied = false;
};

/// For every rank the largest number of stage activations held at once: F takes one, B or W frees it. With forward_only
/// nothing is kept: 1 where the rank computes.
/// Requires: F comes before B and W of its stage and microbatch (check_schedule proves it).
std::vector<int> peak_in_flight(const Schedule& schedule);

}  // namespace vpp
