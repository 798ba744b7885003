#include "app/launched_job.hpp"

#include <CLI/CLI.hpp>

#include <chrono>
#include <iostream>
#include <optional>

#include "app/command_line.hpp"
#include "app/environment.hpp"
#include "app/registries.hpp"
#include "app/run_lock.hpp"
#include "app/stop_signals.hpp"
#include "app/terminal.hpp"
#include "base/elapsed.hpp"
#include "base/error.hpp"
#include "base/shell.hpp"
#include "comm/mpi_session.hpp"
#include "launch/supervisor.hpp"
#include "launch/trial.hpp"
#include "plan/reader.hpp"
#include "plan/rules.hpp"

namespace vpp {

namespace {

// A dying rank holds the lock of the run folder until it is gone, which takes long with much memory or a slow disk.
constexpr std::chrono::seconds kBeforeRestart{2};
constexpr std::chrono::seconds kMostBeforeRestart{60};

/// The plan, with everything that can be wrong about it for so many ranks; 0: as many as it names.
Plan checked_plan(const PlanArguments& arguments, const std::string& command, int& ranks) {
    const Plan plan = load_plan(arguments.config, arguments.overrides, registered_names());
    if (ranks == 0) ranks = natural_world(plan);
    // verify may make room of its own for the layouts that it compares.
    return command == "verify" && ranks != natural_world(plan) ? plan : resolve_plan(plan, ranks);
}

/// What the run folder says of how a training ended; nothing where that cannot be read.
std::optional<RunEnd> told_end(const std::string& run_folder) {
    try {
        return read_run_end(run_folder);
    } catch (const Error&) {
        return std::nullopt;
    }
}

}  // namespace

void add_launch_options(CLI::App& command, LaunchArguments& arguments) {
    command.add_option("-n", arguments.ranks, "number of ranks; default: what the plan names")
        ->check(CLI::Range(1, kMostRanks));
    command.add_option("--host", arguments.host, "hosts and how many ranks each takes: a:4,b:4");
    command.add_option("--hostfile", arguments.hostfile, "the same as a file of Open MPI")->type_name("FILE");
    command.add_option("--interface", arguments.interface, "network between the hosts: eth1 or 10.0.0.0/24")
        ->type_name("NAME");
}

void check_not_under_mpirun(const std::string& command) {
    if (!launch_info(environment_of(launch_variables()))) return;
    throw Error(ErrorKind::CommandLine, command + " starts mpirun itself; type it without mpirun or srun");
}

LaunchedJob checked_job(const LaunchArguments& arguments, const std::vector<std::string>& words) {
    LaunchedJob job;
    job.request.ranks = arguments.ranks;
    job.request.host = arguments.host;
    job.request.hostfile = arguments.hostfile;
    job.request.interface = arguments.interface;
    const PlannedCommand command = planned_command_of(words);
    job.plan = checked_plan(command.arguments, words.front(), job.request.ranks);
    if (words.front() != "train" || command.is_dry_run) job.manner = StopManner::End;
    job.request.threads = job.plan.mesh.threads;
    job.request.forwarded = variables_beginning_with("NCCL_");
    job.request.command = words;
    job.request.command.insert(job.request.command.begin(), program_name());
    return job;
}

LaunchedEnd run_launched_job(const LaunchedJob& job, const HostFacts& host, StopSignals& signals,
                             const std::string& command) {
    stop_signals::outlive_readers();
    const TerminalForJobs terminal;
    LaunchedEnd end;
    SupervisedJob supervised;
    supervised.line = make_mpirun_line(job.request, host);
    supervised.manner = job.manner;
    supervised.max_restarts = job.plan.run.max_restarts;
    supervised.resume = job.plan.checkpoint.resume;
    SupervisorHooks hooks;
    hooks.run = [&](const std::vector<std::string>& line) {
        std::cerr << command << ": the plain line is\n  " << shell_line(line) << std::endl;
        const ChildEnd child = signals.run(line, supervised.manner);
        end.stop_asked = end.stop_asked || child.stop_asked;
        end.is_output_lost = end.is_output_lost || child.is_output_lost;
        return child;
    };
    hooks.look = [&] { return look_at_progress(job.plan.run.dir); };
    hooks.trial = [&] { return find_launch_trouble(job.request, host); };
    hooks.say = [&](const std::string& text) { std::cerr << command << ": " << text << std::endl; };
    hooks.is_holder = [&] { return was_last_held_by(job_of_run(), job.plan.run.dir); };
    hooks.told = [&] { return told_end(job.plan.run.dir); };
    hooks.keep = [&](const RunEnd& lost) { keep_run_end(job.plan.run.dir, lost); };
    hooks.is_stop_asked = [&] {
        const auto start = Clock::now();
        do {
            end.stop_asked = signals.is_stop_asked_within(kBeforeRestart) || end.stop_asked;
        } while (!end.stop_asked && is_held_by(job_of_run(), job.plan.run.dir) &&
                 Clock::now() - start < kMostBeforeRestart);
        return end.stop_asked;
    };
    end.code = supervise(supervised, hooks);
    return end;
}

}  // namespace vpp
