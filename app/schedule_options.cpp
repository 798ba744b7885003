#include "app/schedule_options.hpp"

#include <CLI/CLI.hpp>

#include <cmath>
#include <memory>
#include <string>

#include "app/commands/commands.hpp"
#include "base/error.hpp"
#include "schedule/generators.hpp"
#include "schedule/size.hpp"

namespace vpp {

namespace {

CLI::Range at_least_one() {
    return CLI::Range(int64_t{1}, kMostStageMicrobatches);
}

/// CLI11's own takes infinity, and what is no number.
CLI::Validator positive_number() {
    return {[](const std::string& text) {
                double number = 0;
                const bool is_number = CLI::detail::lexical_cast(text, number);
                if (is_number && std::isfinite(number) && number > 0) return std::string();
                return "it is a finite number above 0 (got " + printable(text) + ')';
            },
            "POSITIVE"};
}

CLI::Option* add_plan(CLI::App& command, ScheduleArguments& schedule, const std::string& what) {
    CLI::Option* config = command.add_option("--config", schedule.plan.config, what)->type_name("PLAN");
    add_override_option(command, schedule.plan);
    return config;
}

/// The numbers that every generated schedule is made from; `usual_virtual`: the stages of a rank without --virtual.
void add_numbers(CLI::App& command, ScheduleArguments& schedule, const std::string& usual_virtual) {
    add_plan(command, schedule, "take what is not given here from this plan (TOML)");
    command.add_option("--pp", schedule.num_ranks, "ranks of the pipeline")->check(at_least_one());
    command.add_option("--virtual", schedule.per_rank, "stages of a rank; default: " + usual_virtual)
        ->check(at_least_one());
    command.add_option("--microbatches", schedule.microbatches, "microbatches of a step; default: 2 x pp")
        ->check(at_least_one());
    command
        .add_option(
            "--costs", schedule.costs,
            "times of a full rank, as F=1,I=1,W=1,comm=0.1; by stage F=1/1/1/3; B= is I + W, halved where neither is "
            "given; comm= latency and "
            "transfer= bytes / bandwidth of a message; overlap= a percentage of the shorter half of an OVERLAP_F_B")
        ->type_name("COSTS");
    command
        .add_option("--memory", schedule.memory, "the most activations a rank may hold, in microbatches of a full rank")
        ->check(positive_number());
}

void add_group(CLI::App& command, ScheduleArguments& schedule) {
    command
        .add_option("--group", schedule.group, "microbatches that a stage takes in a row, where a schedule has such")
        ->check(at_least_one());
}

void add_drawings(CLI::App& command, ScheduleArguments& schedule) {
    command.add_option("--svg", schedule.svg, "write the drawing to this file")->type_name("FILE");
    command.add_option("--trace", schedule.trace, "write a trace for ui.perfetto.dev to this file")->type_name("FILE");
}

/// The names, for help and shells; a wrong one is left to the generators, which name the nearest.
CLI::Validator schedule_words() {
    std::string words;
    for (const ScheduleKind& kind : schedule_kinds()) {
        if (!kind.is_other_spelling()) words += (words.empty() ? "" : ",") + std::string(kind.name);
    }
    return {[](const std::string&) { return std::string(); }, '{' + words + '}'};
}

/// One schedule: generated or from a file.
void add_choice(CLI::App& command, ScheduleArguments& schedule) {
    CLI::Option* name = command.add_option("--schedule", schedule.name, "its name")->check(schedule_words());
    CLI::Option* file =
        command.add_option("--file", schedule.file, "a CSV file instead of a name; with a plan for its stages")
            ->type_name("CSV");
    add_numbers(command, schedule, "the plan's, else the fewest of the schedule");
    add_group(command, schedule);
    file->excludes(name);
    for (const char* number : {"--pp", "--virtual", "--microbatches", "--group"}) {
        file->excludes(command.get_option(number));  // it has its own
    }
    add_drawings(command, schedule);
}

void add_search(CLI::App& command, ScheduleArguments& schedule) {
    add_numbers(command, schedule, "the plan's, else the best of 1 to 4");
    command.add_option("--moves", schedule.moves, "how many changes to try; default: about ten seconds' worth")
        ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
    command.add_option("--seed", schedule.seed, "of the search: same seed and moves, same schedule");
    command.add_option("--objective", schedule.objective, "what to make short; default: makespan")
        ->check(CLI::IsMember({"makespan", "span"}));
    command.add_option("--out", schedule.out, "write the schedule to this CSV file")->type_name("FILE");
    add_drawings(command, schedule);
}

/// A command of the group with arguments of its own.
struct Added {
    CLI::App& command;
    ScheduleArguments& arguments;
};

class ScheduleGroup {
  public:
    ScheduleGroup(CLI::App& app, Chosen& chosen)
        : group_(
              add_command_group(app, "schedule", "pipeline schedules: list, draw, simulate, check and compare them")),
          chosen_(chosen) {}

    Added add(const std::string& name, const std::string& what, const std::string& example,
              int (*run)(const ScheduleArguments&)) {
        const auto arguments = std::make_shared<ScheduleArguments>();
        CLI::App& command = add_command(group_, name, what, example);
        command.callback(
            [arguments, run, &chosen = chosen_] { chosen = [arguments, run] { return run(*arguments); }; });
        return {command, *arguments};
    }

  private:
    CLI::App& group_;
    Chosen& chosen_;
};

void add_json(const Added& added) {
    added.command.add_flag("--json", added.arguments.json, "the result as JSON");
}

void add_schedule_show(ScheduleGroup& group) {
    const Added show = group.add("show", "draw one, from a name, a file or a plan",
                                 "vpp schedule show --schedule ZERO_BUBBLE_V --pp 4", run_schedule_show);
    add_json(show);
    add_choice(show.command, show.arguments);
    show.command.add_flag("--csv", show.arguments.csv, "print the schedule as a file instead of drawing it");
    show.command.add_flag("--lowered", show.arguments.lowered,
                          "with --csv: with its transfers, for stages in a chain or those of --config");
    show.command.add_option("--width", show.arguments.width, "columns of the drawing; default: those of the terminal")
        ->check(CLI::Range(40, 1 << 16));
}

void add_file_commands(ScheduleGroup& group) {
    const Added check = group.add("check", "prove that a CSV file is a sound schedule", "vpp schedule check mine.csv",
                                  run_schedule_check);
    add_json(check);
    check.command.add_option("FILE", check.arguments.file, "the file")->required()->type_name("");
    add_plan(check.command, check.arguments, "prove it for this plan (TOML), not for stages in a chain");
    const Added convert = group.add("convert", "print a CSV file in today's dialect",
                                    "vpp schedule convert old.csv --out new.csv", run_schedule_convert);
    convert.command.add_option("FILE", convert.arguments.file, "the file")->required()->type_name("");
    convert.command.add_option("--out", convert.arguments.out, "write to this file instead of stdout")
        ->type_name("FILE");
    CLI::Option* lowered = convert.command.add_flag("--lowered", convert.arguments.lowered,
                                                    "with transfers, for stages in a chain or those of --config");
    convert.command.add_flag("--compute", convert.arguments.compute, "without transfers and REDUCE_GRAD")
        ->excludes(lowered);
    add_plan(convert.command, convert.arguments, "with --lowered: a plan (TOML) whose stages it is for")
        ->needs(lowered);
}

}  // namespace

void add_schedule(CLI::App& app, Chosen& chosen) {
    ScheduleGroup group(app, chosen);
    add_json(group.add("list", "all schedules that vpp can make", "vpp schedule list", run_schedule_list));
    add_schedule_show(group);
    const Added simulate =
        group.add("simulate", "times, bubbles and memory of one",
                  "vpp schedule simulate --schedule 1F1B --pp 8 --costs F=1,I=1,W=1,comm=0.1", run_schedule_simulate);
    add_json(simulate);
    add_choice(simulate.command, simulate.arguments);
    add_file_commands(group);
    const Added compare = group.add("compare", "all schedules side by side",
                                    "vpp schedule compare --pp 4 --microbatches 12", run_schedule_compare);
    add_json(compare);
    add_numbers(compare.command, compare.arguments, "2, or the nearest that a schedule takes");
    add_group(compare.command, compare.arguments);
    const Added search =
        group.add("search", "look for a better order than any of them",
                  "vpp schedule search --pp 4 --virtual 1 --microbatches 12 --out best.csv", run_schedule_search);
    add_json(search);
    add_search(search.command, search.arguments);
}

}  // namespace vpp
