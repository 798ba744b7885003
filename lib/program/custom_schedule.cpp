#include "program/custom_schedule.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/units.hpp"
#include "program/lowered_schedule.hpp"
#include "schedule/csv.hpp"
#include "schedule/custom.hpp"
#include "schedule/message_order.hpp"

namespace vpp {

namespace {

[[noreturn]] void refuse(const Plan& plan, const std::string& what) {
    throw Error(ErrorKind::Plan, printable(plan.pipeline.schedule_file) + ' ' + what,
                plan.where("pipeline.schedule_file"));
}

/// One of the numbers that a plan and a file must agree about.
void check_number(const Plan& plan, const std::string& found, const char* key, int in_file, int in_plan) {
    if (in_file == in_plan) return;
    refuse(plan, "has " + found + " (expected " + std::to_string(in_plan) + ", as " + key + " says); try " + key +
                     " = " + std::to_string(in_file));
}

std::string stages_on_rank(int stages, size_t rank) {
    return counted_text(stages, "stage") + " on rank " + std::to_string(rank);
}

/// How many stages each rank has.
int check_even(const Plan& plan, const Schedule& schedule) {
    std::vector<int> counts(static_cast<size_t>(schedule.num_ranks), 0);
    for (const int rank : schedule.rank_of_stage) ++counts[static_cast<size_t>(rank)];
    for (size_t rank = 1; rank < counts.size(); ++rank) {
        if (counts[rank] == counts[0]) continue;
        refuse(plan, "puts different numbers of stages on its ranks (got " + stages_on_rank(counts[0], 0) + " and " +
                         stages_on_rank(counts[rank], rank) + "); a plan needs the same number on each");
    }
    return counts[0];
}

void check_fits(const ScheduleFile& file, const Plan& plan) {
    const Schedule& schedule = file.schedule;
    const int stages = check_even(plan, schedule);
    const char* ranks_key = plan.positions.contains("mesh.pp") ? "mesh.pp" : "pipeline.num_stages";
    check_number(plan, counted_text(schedule.num_ranks, "rank"), ranks_key, schedule.num_ranks, *plan.mesh.pp);
    check_number(plan, counted_text(schedule.num_microbatches, "microbatch", "microbatches"),
                 "pipeline.num_microbatches", schedule.num_microbatches, *plan.pipeline.num_microbatches);
    check_number(plan, stages_on_rank(stages, 0), "pipeline.virtual_chunks", stages, plan.pipeline.virtual_chunks);
}

/// What is laid out is a training, also where only evaluations are wanted.
void check_has_backward(const Plan& plan, const Schedule& schedule) {
    if (!schedule.forward_only) return;
    refuse(plan, std::string("has no backward (expected a schedule that trains") +
                     (plan.pipeline.forward_only ? ", as a plan with pipeline.forward_only = true needs too, though "
                                                   "vpp eval does not run it)"
                                                 : ")"));
}

/// In the order that the plan's transport needs. Without overlap a send waits until its receive is reached.
Schedule prove(const Plan& plan, const ScheduleFile& file, const std::vector<ScheduleEdge>& edges) {
    Schedule proved = prove_schedule_file(file, edges).lowered;
    if (message_order(plan) == MessageOrder::Channels) return order_channels(std::move(proved));
    if (plan.pipeline.overlap_p2p_comm) return proved;
    try {
        return prove_schedule_file(file, edges, {.rendezvous = true}).lowered;
    } catch (const Error& error) {
        refuse(plan, "has transfers that only work beside each other, and pipeline.overlap_p2p_comm is false: " +
                         error.problems().front().message + "; try pipeline.overlap_p2p_comm = true, or " +
                         "leave the transfers out of the file");
    }
}

}  // namespace

CustomSchedule read_custom_schedule(const Plan& plan, const std::vector<ScheduleEdge>& edges) {
    const std::string& path = plan.pipeline.schedule_file;
    ScheduleFile file = read_schedule_csv(read_text_file(path, kMostCsvBytes), path);
    check_fits(file, plan);
    check_has_backward(plan, file.schedule);
    CustomSchedule custom{prove(plan, file, edges), file.notes()};
    if (*plan.mesh.dp > 1) {
        add_reductions(custom.lowered);
        return custom;
    }
    for (std::vector<Action>& list : custom.lowered.actions) {
        std::erase_if(list, [](const Action& action) { return action.kind == ActionKind::ReduceGrad; });
    }
    return custom;
}

}  // namespace vpp
