#include <CLI/CLI.hpp>

#include <chrono>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/commands/commands.hpp"
#include "app/commands/comparison_output.hpp"
#include "app/environment.hpp"
#include "app/launched_job.hpp"
#include "app/plan_arguments.hpp"
#include "base/error.hpp"
#include "base/shell.hpp"
#include "base/utf8.hpp"
#include "launch/sweep.hpp"
#include "launch/sweep_folder.hpp"
#include "launch/sweep_grid.hpp"

namespace vpp {

namespace {

struct SweepArguments {
    PlanArguments plan;
    LaunchArguments launch;
    std::vector<std::string> grid;
    std::string folder;  ///< of the runs; empty: beside the run folder of the plan
    bool go = false;
};

/// A combination with its job.
struct SweepRun {
    std::string folder;
    std::vector<std::string> words;  ///< of vpp run: the plan and its settings
    LaunchedJob job;
};

/// The plan and all settings of a combination; those of the grid come behind --set and the folder last.
std::vector<std::string> words_of(const SweepArguments& arguments, const Combination& one, const std::string& folder) {
    std::vector<std::string> words{arguments.plan.config};
    const auto add_setting = [&](const std::string& setting) {
        words.emplace_back("--set");
        words.push_back(setting);
    };
    for (const std::string& setting : arguments.plan.overrides) add_setting(setting);
    for (const std::string& setting : one.settings) add_setting(setting);
    if (!folder.empty()) add_setting("run.dir=" + folder);
    if (arguments.plan.log_level != PlanArguments{}.log_level) {
        words.emplace_back("--log-level");
        words.push_back(arguments.plan.log_level);
    }
    return words;
}

/// Problems of several plans, each once.
class AllProblems {
  public:
    void add(const Error& error, const std::vector<GridAxis>& axes) {
        if (problems_.empty()) kind_ = error.kind();
        for (const Problem& problem : error.problems()) {
            Problem found = in_grid(problem, axes);
            if (seen_.insert(to_text(found)).second) problems_.push_back(std::move(found));
        }
    }
    void raise() {
        if (problems_.empty()) return;
        if (problems_.size() > kMostShown) {
            const std::string more = "and " + std::to_string(problems_.size() - kMostShown) + " more problems";
            problems_.resize(kMostShown);
            problems_.push_back({more, std::nullopt});
        }
        throw Error(kind_, std::move(problems_));
    }

  private:
    static constexpr size_t kMostShown = 100;
    ErrorKind kind_ = ErrorKind::Plan;
    std::vector<Problem> problems_;
    std::set<std::string> seen_;
};

/// `base`: where the folders of all combinations lie; empty: the plan's own folder is left as it is.
SweepRun checked_run(const SweepArguments& arguments, const Combination& one, const std::string& base,
                     const HostFacts& host) {
    SweepRun run;
    if (!base.empty()) run.folder = base + '/' + one.name;
    run.words = words_of(arguments, one, run.folder);
    std::vector<std::string> command = run.words;
    command.insert(command.begin(), "train");
    run.job = checked_job(arguments.launch, command);
    make_mpirun_line(run.job.request, host);  // refuses what the hosts have no room for
    return run;
}

/// The jobs of all combinations, with everything that is wrong with their plans at once.
std::vector<SweepRun> checked_runs(const SweepArguments& arguments, const std::vector<GridAxis>& axes,
                                   const std::string& base, const HostFacts& host) {
    AllProblems problems;
    std::vector<SweepRun> runs;
    for (const Combination& one : combinations_of(axes)) {
        try {
            runs.push_back(checked_run(arguments, one, base, host));
        } catch (const Error& error) {
            problems.add(error, axes);
        }
    }
    problems.raise();
    return runs;
}

/// Where the runs lie when no --folder says it: beside the run folder of the first combination.
std::string base_beside_plan(const SweepArguments& arguments, const std::vector<GridAxis>& axes,
                             const HostFacts& host) {
    const auto base_of = [](const SweepRun& run) { return run.job.plan.run.dir + "-sweep"; };
    try {
        return base_of(checked_run(arguments, combinations_of(axes).front(), "", host));
    } catch (const Error&) {
        return base_of(checked_runs(arguments, axes, "", host).front());  // tells of it with what others have
    }
}

std::vector<std::string> line_of(const SweepArguments& arguments, const SweepRun& run) {
    std::vector<std::string> line{program_name(), "run"};
    const auto add = [&line](const std::string& option, const std::string& value) {
        line.push_back(option);
        line.push_back(value);
    };
    if (arguments.launch.ranks > 0) add("-n", std::to_string(arguments.launch.ranks));
    if (!arguments.launch.host.empty()) add("--host", arguments.launch.host);
    if (!arguments.launch.hostfile.empty()) add("--hostfile", arguments.launch.hostfile);
    if (!arguments.launch.interface.empty()) add("--interface", arguments.launch.interface);
    line.insert(line.end(), run.words.begin(), run.words.end());
    return line;
}

SweepFolder folder_of(const SweepRun& run) {
    return look_at_sweep_folder(run.folder, settings_from_plan(run.job.plan.resolved_text));
}

/// A sweep does not go on from runs that had other settings: their results would be a mixture under one name.
void check_folders(const std::vector<SweepRun>& runs) {
    std::vector<Problem> problems;
    for (const SweepRun& run : runs) {
        const SweepFolder found = folder_of(run);
        if (found.progress != SweepProgress::Other) continue;
        problems.push_back({printable(run.folder + " holds a run with other settings (" + found.difference +
                                      "); choose another --folder, or remove it"),
                            std::nullopt});
    }
    if (!problems.empty()) throw Error(ErrorKind::Refused, std::move(problems));
}

void say_of_sweep(const std::string& text) {
    std::cerr << "vpp sweep: " << text << std::endl;
}

SweepEnd go(const std::vector<SweepRun>& runs, const HostFacts& host) {
    say_started_by_run();
    std::vector<std::string> folders;
    for (const SweepRun& run : runs) folders.push_back(run.folder);
    StopSignals signals;
    SweepHooks hooks;
    hooks.is_finished = [&](size_t run) { return folder_of(runs[run]).progress == SweepProgress::Finished; };
    hooks.run = [&](size_t run) {
        const LaunchedEnd end = run_launched_job(runs[run].job, host, signals, "vpp sweep");
        return SweepJobEnd{end.code, end.stop_asked};
    };
    hooks.is_stop_asked = [&] { return signals.is_stop_asked_within(std::chrono::milliseconds(1)); };
    hooks.say = say_of_sweep;
    return run_sweep(folders, hooks);
}

/// What has come of all runs, also of those that have left nothing.
void print_end(const std::vector<SweepRun>& runs, const SweepEnd& end) {
    std::vector<RecordedRun> records;
    for (const SweepRun& run : runs) {
        if (folder_of(run).progress != SweepProgress::Fresh) {
            records.push_back(read_run(run.folder));
        } else {
            RecordedRun none;
            none.name = run.folder;
            none.settings = settings_from_plan(run.job.plan.resolved_text);
            records.push_back(std::move(none));
        }
    }
    Comparison comparison = compare_runs(std::move(records));
    for (size_t i = 0; i < runs.size(); ++i) {
        if (!end.states[i].empty()) comparison.runs[i].state = end.states[i];
    }
    for (const ComparedRun& run : comparison.runs) say_notes(run.record);
    print_comparison(comparison, kComparedCurve);
}

/// A name of a folder that --set can take and a line can show.
void check_folder_name(const std::string& folder) {
    if (printable(folder) == folder && as_utf8(folder) == folder && !folder.empty()) return;
    throw Error(ErrorKind::CommandLine,
                "--folder '" + printable(folder) + "' is no name of a folder; try --folder runs/sweep");
}

int run_sweep_command(const SweepArguments& arguments) {
    check_not_under_mpirun("vpp sweep");
    const std::vector<GridAxis> axes = parse_grid(arguments.grid);
    const HostFacts host = look_at_host(environment_of(host_variables()));
    std::string base = arguments.folder;
    if (base.empty()) base = base_beside_plan(arguments, axes, host);
    check_folder_name(base);
    const std::vector<SweepRun> runs = checked_runs(arguments, axes, base, host);
    if (!arguments.go) {
        for (const SweepRun& run : runs) std::cout << shell_line(line_of(arguments, run)) << "\n";
        std::cout.flush();
        return 0;
    }
    check_folders(runs);
    const SweepEnd end = go(runs, host);
    print_end(runs, end);
    return end.code;
}

}  // namespace

void add_sweep(CLI::App& app, Chosen& chosen) {
    const auto arguments = std::make_shared<SweepArguments>();
    CLI::App& command = add_command(
        app, "sweep", "print a command line for each combination of settings; --go runs them, then compares",
        "vpp sweep plan.toml --grid optimizer.lr=1e-3,3e-3 --grid train.seed=1,2 --go");
    add_plan_options(command, arguments->plan);
    command.add_option("--grid", arguments->grid, "a key and its values: section.key=value,value; may be repeated")
        ->required()
        ->type_name("KEY=VALUE")
        ->take_all()
        ->allow_extra_args(false);
    command
        .add_option("--folder", arguments->folder, "where the run folders lie; default: run.dir of the plan + -sweep")
        ->type_name("DIR");
    add_launch_options(command, arguments->launch);
    command.add_flag("--go", arguments->go, "run what is not finished yet, one after the other");
    command.callback([arguments, &chosen] { chosen = [arguments] { return run_sweep_command(*arguments); }; });
}

}  // namespace vpp
