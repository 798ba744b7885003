#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <iostream>

#include "app/command_line.hpp"
#include "app/commands/commands.hpp"
#include "app/environment.hpp"
#include "app/registries.hpp"
#include "base/error.hpp"
#include "launch/mpirun_line.hpp"
#include "launch/shell.hpp"
#include "launch/supervisor.hpp"
#include "launch/trial.hpp"
#include "plan/reader.hpp"
#include "plan/rules.hpp"

namespace vpp {

namespace {

// A dying rank holds the lock of the run folder until it is gone.
constexpr std::chrono::seconds kBeforeRestart{2};

struct RunArguments {
    int ranks = 0;  ///< 0 = what the plan names
    std::string host, hostfile;
    bool print = false;
    std::vector<std::string> words;  ///< [command] plan [options of the command]
};

/// The words with the command in front that they leave out.
std::vector<std::string> with_command(std::vector<std::string> words) {
    static const std::vector<std::string> kOnRanks{"train", "eval", "verify"};
    if (words.empty()) throw Error(ErrorKind::CommandLine, "no plan is named; try vpp run plan.toml");
    const std::string& first = words.front();
    if (std::ranges::find(kOnRanks, first) != kOnRanks.end()) return words;
    if (std::ranges::count(command_names(), first) > 0) {
        throw Error(ErrorKind::CommandLine, "vpp " + first + " needs no ranks; type it without run");
    }
    words.insert(words.begin(), "train");
    return words;
}

void say(const std::string& text) {
    std::cerr << "vpp run: " << text << std::endl;
}

/// The plan, with everything that can be wrong about it for so many ranks.
Plan checked_plan(const PlanArguments& arguments, const std::string& command, int& ranks) {
    const Plan plan = load_plan(arguments.config, arguments.overrides, registered_names());
    if (ranks == 0) ranks = natural_world(plan);
    // verify may make room of its own for the layouts that it compares.
    return command == "verify" && ranks != natural_world(plan) ? plan : resolve_plan(plan, ranks);
}

int supervise_here(const LaunchRequest& request, const HostFacts& host, const Plan& plan) {
    SupervisedJob job;
    job.line = make_mpirun_line(request, host);
    job.manner = request.command.at(1) == "train" ? StopManner::Save : StopManner::End;
    job.max_restarts = plan.run.max_restarts;
    job.resume = plan.checkpoint.resume;
    StopSignals signals;
    SupervisorHooks hooks;
    hooks.run = [&](const std::vector<std::string>& line) {
        std::cerr << "vpp run: the plain line is\n  " << shell_line(line) << std::endl;
        return signals.run(line, job.manner);
    };
    hooks.look = [&] { return look_at_progress(plan.run.dir); };
    hooks.trial = [&] { return find_launch_trouble(request, host); };
    hooks.say = say;
    hooks.is_stop_asked = [&] { return signals.is_stop_asked_within(kBeforeRestart); };
    return supervise(job, hooks);
}

int run_run(const RunArguments& arguments) {
    if (!mpi_environment().empty()) {
        throw Error(ErrorKind::CommandLine, "vpp run starts mpirun itself; type it without mpirun");
    }
    LaunchRequest request;
    request.command = with_command(arguments.words);
    request.ranks = arguments.ranks;
    request.host = arguments.host;
    request.hostfile = arguments.hostfile;
    const Plan plan = checked_plan(plan_arguments_of(request.command), request.command.front(), request.ranks);
    request.threads = plan.mesh.threads;
    request.command.insert(request.command.begin(), program_name());
    const HostFacts host = look_at_host(environment_of(host_variables()));
    if (arguments.print) {
        std::cout << shell_line(make_mpirun_line(request, host)) << std::endl;
        return 0;
    }
    say_started_by_run();
    return supervise_here(request, host, plan);
}

}  // namespace

void add_run(CLI::App& app, Chosen& chosen) {
    const auto arguments = std::make_shared<RunArguments>();
    CLI::App& command = add_command(
        app, "run", "start mpirun for: [train|eval|verify] PLAN [their options]; Ctrl-C saves", "vpp run plan.toml");
    command.add_option("-n", arguments->ranks, "number of ranks; default: what the plan names")
        ->check(CLI::Range(1, 1 << 20));
    command.add_option("--host", arguments->host, "hosts and how many ranks each takes: a:4,b:4");
    command.add_option("--hostfile", arguments->hostfile, "the same as a file of Open MPI")->type_name("FILE");
    command.add_flag("--print", arguments->print, "print the plain line and start nothing");
    command.allow_extras();
    command.callback([arguments, &command, &chosen] {
        arguments->words = command.remaining();
        chosen = [arguments] { return run_run(*arguments); };
    });
}

}  // namespace vpp
