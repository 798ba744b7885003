#pragma once
// Schedules from files at work: their transfers matched with edges, lowered where they are not, and proved.
#include "schedule/checker.hpp"
#include "schedule/csv.hpp"

namespace vpp {

/// A lowered schedule and what its proof counted.
struct ProvedSchedule {
    Schedule lowered;
    ScheduleFacts facts;
};

/// A cell `0SEND_F2` of a lowered file stands for all values of stage 0 that leave its rank, in the order of `edges`,
/// and is legal only when they go to one rank; `0SEND_F2>3` for those that go to rank 3; the same for the other kinds.
/// Gradients of tied parameters have no cells; they are sent and received where lower does that.
/// A file of computing actions is lowered over the edges; its REDUCE_GRAD, at most one a stage and behind the stage's
/// last weight gradient, are left to lowering. With `options.rendezvous` the transfers get one order for the whole job,
/// and those of a lowered file have to be in one.
/// Requires: edges as in routes_of (schedule/edges.hpp), for the stages of the file.
/// Throws:   Error{BadData}, since the file is wrong: in the words of check_schedule, or with the cell of a transfer.
ProvedSchedule prove_schedule_file(const ScheduleFile& file, const std::vector<ScheduleEdge>& edges,
                                   const CheckOptions& options = {});

/// The schedule without transfers and REDUCE_GRAD: what generators make.
Schedule computing_part(const Schedule& schedule);

/// What a file says of a lowered schedule: all but the transfers of tied parameters, which have no cells.
Schedule part_with_cells(const Schedule& lowered, const std::vector<ScheduleEdge>& edges);

}  // namespace vpp
