#include <CLI/CLI.hpp>

#include <algorithm>
#include <iostream>
#include <memory>

#include "app/command_line.hpp"
#include "app/commands/commands.hpp"
#include "app/environment.hpp"
#include "app/failure.hpp"
#include "app/launched_job.hpp"
#include "base/error.hpp"
#include "base/shell.hpp"

namespace vpp {

namespace {

struct RunArguments {
    LaunchArguments launch;
    bool print = false;
    std::vector<std::string> words;  ///< [command] plan [options of the command]
};

/// The words with the command in front that they leave out.
std::vector<std::string> with_command(std::vector<std::string> words) {
    if (words.empty()) throw Error(ErrorKind::CommandLine, "no plan is named; try vpp run plan.toml");
    const std::string& first = words.front();
    if (std::ranges::find(kCommandsOnRanks, first) != kCommandsOnRanks.end()) return words;
    if (std::ranges::count(command_names(), first) > 0) {
        throw Error(ErrorKind::CommandLine, "vpp " + first + " needs no ranks; type it without run");
    }
    words.insert(words.begin(), "train");
    return words;
}

int run_run(const RunArguments& arguments) {
    check_not_under_mpirun("vpp run");
    const LaunchedJob job = checked_job(arguments.launch, with_command(arguments.words));
    const HostFacts host = look_at_host(environment_of(host_variables()));
    if (arguments.print) {
        std::cout << shell_line(make_mpirun_line(job.request, host)) << std::endl;
        return 0;
    }
    say_started_by_run();
    StopSignals signals;
    const LaunchedEnd end = run_launched_job(job, host, signals, "vpp run");
    return end.is_output_lost ? told_lost_output(end.code) : end.code;
}

}  // namespace

void add_run(CLI::App& app, Chosen& chosen) {
    const auto arguments = std::make_shared<RunArguments>();
    CLI::App& command = add_command(
        app, "run", "start mpirun for: [train|eval|verify] PLAN [their options]; Ctrl-C saves", "vpp run plan.toml");
    add_launch_options(command, arguments->launch);
    command.add_flag("--print", arguments->print, "print the plain line and start nothing");
    command.allow_extras();
    command.callback([arguments, &command, &chosen] {
        arguments->words = command.remaining();
        chosen = [arguments] { return run_run(*arguments); };
    });
}

}  // namespace vpp
