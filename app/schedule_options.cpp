#include "app/schedule_options.hpp"

#include <CLI/CLI.hpp>

#include "app/command_line.hpp"
#include "schedule/size.hpp"

namespace vpp {

namespace {

/// The numbers that every generated schedule is made from.
void add_numbers(CLI::App& command, ScheduleArguments& schedule, PlanArguments& plan) {
    const CLI::Range at_least_one(int64_t{1}, kMostStageMicrobatches);
    command.add_option("--config", plan.config, "take what is not given here from this plan (TOML)")->type_name("FILE");
    command.add_option("--set", plan.overrides, "override a key of the plan: section.key=value; may be repeated")
        ->type_name("KEY=VALUE")
        ->take_all()
        ->allow_extra_args(false);
    command.add_option("--pp", schedule.num_ranks, "ranks of the pipeline")->check(at_least_one);
    command.add_option("--virtual", schedule.per_rank, "stages of a rank; default: the fewest of the schedule")
        ->check(at_least_one);
    command.add_option("--microbatches", schedule.microbatches, "microbatches of a step; default: 2 x pp")
        ->check(at_least_one);
    command
        .add_option(
            "--costs", schedule.costs,
            "times of a full rank, as F=1,I=1,W=1,comm=0.1; by stage F=1/1/1/3; B= is I + W; comm= latency and "
            "transfer= bytes / bandwidth of a message; overlap= a percentage of the shorter half of an OVERLAP_F_B")
        ->type_name("COSTS");
    command
        .add_option("--memory", schedule.memory, "the most activations a rank may hold, in microbatches of a full rank")
        ->check(CLI::PositiveNumber);
    command
        .add_option("--group", schedule.group, "microbatches that a stage takes in a row, where a schedule has such")
        ->check(at_least_one);
}

void add_drawings(CLI::App& command, ScheduleArguments& schedule) {
    command.add_option("--svg", schedule.svg, "write the drawing to this file")->type_name("FILE");
    command.add_option("--trace", schedule.trace, "write a trace for ui.perfetto.dev to this file")->type_name("FILE");
}

/// One schedule: generated or from a file.
void add_choice(CLI::App& command, ScheduleArguments& schedule, PlanArguments& plan) {
    CLI::Option* name = command.add_option("--schedule", schedule.name, "its name; vpp schedule list names them");
    command.add_option("--file", schedule.file, "a CSV file instead of a name")->type_name("CSV")->excludes(name);
    add_numbers(command, schedule, plan);
    add_drawings(command, schedule);
}

void add_search(CLI::App& command, ScheduleArguments& schedule, PlanArguments& plan) {
    add_numbers(command, schedule, plan);
    command.add_option("--moves", schedule.moves, "how many changes to try; default: about ten seconds' worth")
        ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
    command.add_option("--seed", schedule.seed, "of the search: same seed and moves, same schedule");
    command.add_option("--objective", schedule.objective, "what to make short: makespan (the default) or span")
        ->check(CLI::IsMember({"makespan", "span"}));
    command.add_option("--out", schedule.out, "write the schedule to this CSV file")->type_name("FILE");
    add_drawings(command, schedule);
}

}  // namespace

void add_schedule_commands(CLI::App& app, ScheduleArguments& schedule, PlanArguments& plan) {
    CLI::App* group =
        app.add_subcommand("schedule", "pipeline schedules: list, draw, simulate, check and compare them");
    group->require_subcommand(1);
    const auto add = [&](const char* name, const char* what) {
        CLI::App* command = group->add_subcommand(name, what);
        command->add_flag("--json", schedule.json, "the result as JSON");
        return command;
    };
    add("list", "all schedules that vpp can make");
    CLI::App* show = add("show", "draw one, from a name, a file or a plan");
    add_choice(*show, schedule, plan);
    show->add_flag("--csv", schedule.csv, "print the schedule as a file instead of drawing it");
    show->add_flag("--lowered", schedule.lowered, "with --csv: with its transfers");
    show->add_option("--width", schedule.width, "columns of the drawing; default: those of the terminal")
        ->check(CLI::Range(40, 1 << 16));
    add_choice(*add("simulate", "times, bubbles and memory of one"), schedule, plan);
    CLI::App* check = add("check", "prove that a CSV file is a sound schedule");
    check->add_option("FILE", schedule.file, "the file")->required()->type_name("");
    CLI::App* convert = group->add_subcommand("convert", "print a CSV file in today's dialect");
    convert->add_option("FILE", schedule.file, "the file")->required()->type_name("");
    convert->add_option("--out", schedule.out, "write to this file instead of stdout")->type_name("FILE");
    CLI::Option* lowered = convert->add_flag("--lowered", schedule.lowered, "with transfers, for stages in a chain");
    convert->add_flag("--compute", schedule.compute, "without transfers and REDUCE_GRAD")->excludes(lowered);
    add_numbers(*add("compare", "all schedules side by side"), schedule, plan);
    add_search(*add("search", "look for a better order than any of them"), schedule, plan);
}

}  // namespace vpp
