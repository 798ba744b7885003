#include "app/commands/schedule_stages.hpp"

#include "app/planned_program.hpp"
#include "base/error.hpp"
#include "program/lowered_schedule.hpp"
#include "schedule/edges.hpp"
#include "schedule/lowering.hpp"
#include "schedule/tied_order.hpp"

namespace vpp {

ScheduleStages stages_in_chain(int num_stages) {
    ScheduleStages stages;
    stages.edges = chain_edges(num_stages);
    return stages;
}

ScheduleStages stages_of_program(const Program& program, const Plan& plan) {
    ScheduleStages stages;
    stages.edges = schedule_edges(program.training.split);
    stages.options.rendezvous = message_order(plan) == MessageOrder::Global;
    stages.what = "the stages of the plan";
    stages.of_plan = true;
    return stages;
}

ScheduleStages stages_of_plan(Plan plan, const std::string& name) {
    plan.pipeline.schedule_type = name;
    return stages_of_program(make_program(plan), plan);
}

ScheduleStages stages_of_file(const ScheduleFile& file, const std::optional<Plan>& plan) {
    if (!plan) return stages_in_chain(file.schedule.num_stages());
    Plan custom = *plan;
    custom.pipeline.schedule_type = "CUSTOM";
    custom.pipeline.schedule_file = file.source;
    if (custom.pipeline.choose_virtual_chunks) {
        custom.pipeline.choose_virtual_chunks = false;
        custom.pipeline.virtual_chunks = static_cast<int>(file.schedule.stages_of(0).size());
    }
    return stages_of_program(make_program(custom), custom);
}

ProvedSchedule prove_over(const ScheduleFile& file, const ScheduleStages& stages) {
    try {
        return prove_schedule_file(file, stages.edges, stages.options);
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::BadData || !file.is_lowered || stages.of_plan) throw;
        std::vector<Problem> problems = error.problems();
        problems.push_back({"its transfers were held against stages in a chain; --config PLAN takes those of a plan",
                            SourcePosition{file.source, 0, 0, ""}});
        throw Error(ErrorKind::BadData, problems);
    }
}

std::string file_text(const Schedule& lowered, const ScheduleStages& stages) {
    const std::string text = to_csv(part_with_cells(lowered, stages.edges));
    try {
        prove_over(read_schedule_csv(text, "the file"), stages);
    } catch (const Error& error) {
        if (!stages.options.rendezvous) throw;
        throw Error(ErrorKind::Plan,
                    "a file with transfers has one place for all that a stage sends another one of a microbatch, and "
                    "none for gradients of tied weights, and with pipeline.overlap_p2p_comm = false this schedule "
                    "needs more; leave --lowered out (" +
                        error.problems().front().message + ")");
    }
    return text;
}

Schedule lower_over(const Schedule& compute, const ScheduleStages& stages, const ScheduleCosts& costs) {
    const MessageOrder order = stages.options.rendezvous ? MessageOrder::Global : MessageOrder::BeforeConsumer;
    Schedule lowered = lower(order_tied(compute, stages.edges, costs), stages.edges, {.order = order, .costs = costs});
    check_schedule(lowered, stages.edges, stages.options);
    return lowered;
}

}  // namespace vpp
