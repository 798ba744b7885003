#include <unistd.h>

#include <CLI/CLI.hpp>

#include <csignal>
#include <filesystem>
#include <iostream>

#include "app/commands/commands.hpp"
#include "app/environment.hpp"
#include "app/job.hpp"
#include "app/run_lock.hpp"
#include "app/stop_signals.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "comm/collective.hpp"
#include "engine/agreement.hpp"
#include "engine/train.hpp"
#include "report/console.hpp"
#include "report/json_lines.hpp"
#include "report/reporters.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

void make_run_folder(const Job& job) {
    const fs::path folder = job.plan.run.dir;
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) {
        throw Error(ErrorKind::Output, "cannot make the run folder " + folder.string() + ": " + error.message() +
                                           "; set run.dir to a folder that can be written");
    }
}

/// The run folder, tried before anything long begins. It is this job's as long as the lock lives.
std::unique_ptr<FileLock> open_run_folder(const Job& job) {
    const fs::path folder = job.plan.run.dir;
    auto lock = lock_run_folder(folder);
    job.log->add_file((folder / "log.txt").string());
    write_file_durably(folder / "plan.toml", job.plan.resolved_text);
    return lock;
}

/// Rank 0's listeners; the metrics file is opened when the first step is known, since later lines are cut off then.
void listen(Reporters& reporters, const Job& job, int64_t first_step) {
    const fs::path metrics = fs::path(job.plan.run.dir) / "metrics.jsonl";
    cut_after(metrics, first_step, job.log);
    reporters.add(std::make_unique<ConsoleReporter>(std::cout, job.plan.report.every));
    reporters.add(std::make_unique<JsonLinesReporter>(metrics, job.log));
}

void greet(const Job& job, const Program& program) {
    int64_t parameters = 0;
    for (const StageSpec& stage : program.training.split.stages) parameters += stage.num_parameters;
    job.log->info(std::to_string(parameters) + " parameters in " + std::to_string(program.training.split.num_stages()) +
                  " stages on " + std::to_string(program.mesh.num_ranks()) + " ranks, " +
                  program.training.schedule.name + ", " + numeric_environment(job.plan).text());
    for (const std::string& warning : program.training.graph.warnings) job.log->warn(warning);
    job.log->info(
        job.transport.size() > 1
            ? "to stop: SIGUSR1 to mpirun saves and exits 85; Ctrl-C and SIGTERM leave about a second for that"
            : "to stop: SIGUSR1, SIGTERM and Ctrl-C save and exit 85");
}

int say_stopped(const Job& job, const TrainResult& result) {
    if (job.is_first()) {
        const std::string done = "stopped after step " + std::to_string(result.last_step) + " as asked by a signal; ";
        const std::string kept =
            result.checkpoint.empty() ? "no step was done since the start" : "saved in " + result.checkpoint.string();
        job.log->info(done + kept + "; the same command goes on from there");
    }
    return exit_code(ErrorKind::Stopped);
}

/// See StopPointNumber.
StopHook stop_point_of(const Job& job) {
    const std::optional<StopPointNumber> wanted = stop_point_number();
    const int rank = job.transport.rank();
    if (!wanted || (wanted->number > 0 && wanted->rank != rank)) return {};
    return [rank, wanted = wanted->number, number = 0](std::string_view point) mutable {
        if (++number != wanted && wanted > 0) return;
        std::cerr << "vpp: rank " + std::to_string(rank) + ": stop point " + std::to_string(number) + ", " +
                         std::string(point) + "\n";
        if (wanted > 0) ::kill(::getpid(), SIGKILL);
    };
}

int train_on(const Job& job) {
    Datasets data = open_datasets(job.plan);
    Prepared prepared = agree_on_program(job.transport, job.plan, data);
    guard_ranges(data, job.plan, prepared.program.training.graph);
    make_run_folder(job);
    const RunFolders folders = RunFolders::find(job.transport, job.plan.run.dir);
    std::unique_ptr<FileLock> lock;
    if (folders.keeps(job.transport.rank())) lock = open_run_folder(job);
    if (job.is_first()) {
        greet(job, prepared.program);
        if (!folders.is_one()) {
            job.log->info("the ranks do not share a run folder, so each keeps its own shards: " + folders.text());
        }
    }
    barrier(job.transport);
    Engine engine(job.plan, prepared.program, prepared.sources, data, job.transport);
    Reporters reporters;
    TrainOptions options;
    options.reporter = job.is_first() ? &reporters : nullptr;
    options.log = job.log;
    options.ranks_exceed_cores = job.ranks_exceed_cores;
    options.resumed = [&](int64_t step) {
        if (job.is_first()) listen(reporters, job, step);
    };
    options.stop_request = stop_signals::came;
    options.stop_point = stop_point_of(job);
    options.folders = folders;
    const TrainResult result = train(engine, job.plan, prepared.program, options);
    if (result.stopped) return say_stopped(job, result);
    if (job.is_first() && result.checkpoint.empty()) {
        job.log->info("nothing to do: " + std::to_string(result.first_step) + " of " +
                      std::to_string(engine.total_steps()) + " steps are done");
    }
    return 0;
}

int run_train(const PlanArguments& arguments) {
    stop_signals::listen();
    return run_job(arguments, [](const Job& job) {
        check_trains(job.plan);
        if (!job.plan.train.steps && !job.plan.train.epochs) {
            throw Error(ErrorKind::Plan,
                        "[train] names neither steps nor epochs; write how long to train, as in steps = 200",
                        job.plan.where("train"));
        }
        return train_on(job);
    });
}

}  // namespace

void add_train(CLI::App& app, Chosen& chosen) {
    const auto arguments = std::make_shared<PlanArguments>();
    CLI::App& command =
        add_command(app, "train", "train; start it with mpirun -np RANKS", "mpirun -np 4 vpp train plan.toml");
    add_plan_options(command, *arguments);
    command.callback([arguments, &chosen] { chosen = [arguments] { return run_train(*arguments); }; });
}

}  // namespace vpp
