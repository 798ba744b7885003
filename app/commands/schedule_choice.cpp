#include "app/commands/schedule_choice.hpp"

#include <algorithm>
#include <iostream>

#include "app/kept_files.hpp"
#include "app/planned_program.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/units.hpp"
#include "plan/batch_size.hpp"
#include "schedule/generators.hpp"
#include "schedule/metrics.hpp"

namespace vpp {

namespace {

int fewest_per_rank(const std::string& name) {
    for (const ScheduleKind& kind : schedule_kinds()) {
        if (name == kind.name) return kind.fewest_per_rank;
    }
    return 1;
}

/// Generators that do not look at the limit may be above it.
void check_memory(const ChosenSchedule& chosen, std::optional<double> limit) {
    if (!limit) return;
    const double peak = measure_schedule(chosen.lowered, chosen.costs).peak_activations();
    if (peak <= *limit) return;
    throw Error(ErrorKind::Plan, chosen.lowered.name + " keeps the activations of " + fixed_text(peak, 2) +
                                     " microbatches on a rank, above the limit (got " + fixed_text(*limit, 2) +
                                     "); vpp schedule compare with the same limit shows what fits");
}

std::vector<NamedOutput> outputs_of(const ScheduleArguments& given) {
    return {{"--out", given.out}, {"--svg", given.svg}, {"--trace", given.trace}};
}

/// Costs by place are for stages in a chain.
void check_places(const ScheduleCosts& costs, const ScheduleStages& stages) {
    if (!stages.of_plan || costs.transfer_of.empty()) return;
    throw Error(ErrorKind::CommandLine,
                "comm= and transfer= by place are for stages in a chain, and here they are those of the plan; give one "
                "value for all");
}

ChosenSchedule choose_from_file(const std::string& path, const ScheduleArguments& given,
                                const std::optional<Plan>& plan) {
    ChosenSchedule chosen;
    chosen.file = open_schedule_file(path);
    chosen.costs = parse_costs_for(chosen.file->schedule, given.costs);
    chosen.compute = computing_part(chosen.file->schedule);
    chosen.stages = stages_of_file(*chosen.file, plan);
    check_places(chosen.costs, chosen.stages);
    chosen.lowered = prove_over(*chosen.file, chosen.stages).lowered;
    check_memory(chosen, given.memory);
    return chosen;
}

/// Those that a generated schedule is lowered for. A file with transfers is for the plan's model, if there is a plan.
ScheduleStages stages_of(const Schedule& compute, const ScheduleArguments& given, const std::optional<Plan>& plan) {
    if (!plan || !given.lowered) return stages_in_chain(compute.num_stages());
    const int num_ranks = *plan->mesh.pp, num_stages = num_ranks * plan->pipeline.virtual_chunks;
    if (compute.num_ranks == num_ranks && compute.num_stages() == num_stages) {
        return stages_of_plan(*plan, compute.name);
    }
    throw Error(ErrorKind::CommandLine,
                "with a plan --lowered writes the transfers of its model, which has " +
                    counted_text(num_stages, "stage") + " on " + counted_text(num_ranks, "rank") + " (got " +
                    counted_text(compute.num_stages(), "stage") + " on " + counted_text(compute.num_ranks, "rank") +
                    "); change the plan with --set instead of --pp and --virtual");
}

/// Numbers that say what a generator makes.
bool has_size(const ScheduleArguments& given) {
    return given.num_ranks || given.per_rank || given.microbatches || given.group;
}

/// The schedule file of a plan.
ChosenSchedule choose_custom(const ScheduleArguments& given, const std::optional<Plan>& plan) {
    if (has_size(given)) {
        throw Error(
            ErrorKind::CommandLine,
            "--pp, --virtual, --microbatches and --group are for a schedule that is generated, and the plan's is "
            "a file (" +
                plan->pipeline.schedule_file + "); name another with --schedule");
    }
    return choose_from_file(plan->pipeline.schedule_file, given, plan);
}

/// AUTO of a plan: what its training runs, once or more a step.
ChosenSchedule choose_searched(const ScheduleArguments& given, const std::optional<Plan>& plan) {
    if (!plan || has_size(given) || given.memory || !given.costs.empty()) {
        throw Error(ErrorKind::CommandLine,
                    "AUTO is searched for the model of a plan; vpp schedule search takes numbers and costs");
    }
    Plan searched = with_one_run(*plan);
    searched.pipeline.schedule_type = "AUTO";
    const Program program = make_program(searched);
    const Schedule& lowered = program.training.schedule;
    return {computing_part(lowered), lowered, program.costs, stages_of_program(program, searched), std::nullopt};
}

}  // namespace

std::optional<Plan> schedule_plan(const ScheduleArguments& given) {
    if (given.plan.config.empty()) return std::nullopt;
    Plan plan = resolved_plan(given.plan);
    check_outputs(outputs_of(given), files_of_plan(plan));
    return plan;
}

ScheduleSize ranks_and_microbatches(const ScheduleArguments& given, const std::optional<Plan>& plan) {
    if (!given.num_ranks && !plan) throw Error(ErrorKind::CommandLine, "--pp is missing: the ranks of the pipeline");
    ScheduleSize size;
    size.num_ranks = given.num_ranks.value_or(plan ? *plan->mesh.pp : 1);
    size.num_microbatches = given.microbatches.value_or(plan ? *plan->pipeline.num_microbatches : 2 * size.num_ranks);
    return size;
}

std::optional<double> activations_limit(const ScheduleArguments& given, const std::optional<Plan>& plan) {
    if (given.memory || !plan || !plan->pipeline.memory_limit) return given.memory;
    const MemoryLimit& limit = *plan->pipeline.memory_limit;
    if (limit.activations) return limit.activations;
    throw Error(ErrorKind::CommandLine,
                "pipeline.memory_limit is in bytes, and a schedule alone has none (got " + bytes_text(*limit.bytes) +
                    "); give --memory in activations of a microbatch, or see vpp inspect",
                plan->where("pipeline.memory_limit"));
}

std::optional<int> interleave_group(const ScheduleArguments& given, const std::optional<Plan>& plan) {
    return given.group || !plan ? given.group : plan->pipeline.interleave_group_size;
}

ScheduleFile open_schedule_file(const std::string& path, bool any_dialect) {
    const std::string text = read_text_file(path, kMostCsvBytes);
    ScheduleFile file = any_dialect ? read_any_schedule_csv(text, path) : read_schedule_csv(text, path);
    for (const std::string& note : file.notes()) std::cerr << "vpp: note: " << note << std::endl;
    return file;
}

ChosenSchedule choose_schedule(const ScheduleArguments& given) {
    const std::optional<Plan> plan = schedule_plan(given);
    if (!given.file.empty()) {
        check_outputs(outputs_of(given), {{given.file, "the schedule"}});
        return choose_from_file(given.file, given, plan);
    }
    const std::string name = !given.name.empty() ? given.name : plan ? plan->pipeline.schedule_type : "";
    if (name == "CUSTOM" && plan) return choose_custom(given, plan);
    if (name == "AUTO") return choose_searched(given, plan);
    if (name.empty()) {
        throw Error(ErrorKind::CommandLine,
                    "no schedule is named; give --schedule NAME (vpp schedule list), --file CSV or --config PLAN");
    }
    ScheduleSize size = ranks_and_microbatches(given, plan);
    size.stages_per_rank = given.per_rank.value_or(plan ? plan->pipeline.virtual_chunks : fewest_per_rank(name));
    check_size(size);
    ChosenSchedule chosen;
    chosen.costs = parse_costs(given.costs, size);
    const std::optional<double> limit = activations_limit(given, plan);
    chosen.compute = make_schedule(name, {size, chosen.costs, limit, interleave_group(given, plan)});
    chosen.stages = stages_of(chosen.compute, given, plan);
    check_places(chosen.costs, chosen.stages);
    chosen.lowered = lower_over(chosen.compute, chosen.stages, chosen.costs);
    check_memory(chosen, limit);
    return chosen;
}

}  // namespace vpp
