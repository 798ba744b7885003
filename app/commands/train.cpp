#include <unistd.h>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "app/commands/commands.hpp"
#include "app/display.hpp"
#include "app/environment.hpp"
#include "app/job.hpp"
#include "app/registries.hpp"
#include "app/run_lock.hpp"
#include "app/stop_signals.hpp"
#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/run_files.hpp"
#include "base/units.hpp"
#include "checkpoint/going_on.hpp"
#include "comm/collective.hpp"
#include "engine/agreement.hpp"
#include "engine/cost_profile.hpp"
#include "engine/rehearsal.hpp"
#include "engine/train.hpp"
#include "plan/replaced_plan.hpp"
#include "plan/training_rules.hpp"
#include "program/lowered_schedule.hpp"
#include "program/one_microbatch.hpp"
#include "report/cost_text.hpp"
#include "report/reporters.hpp"
#include "report/run_end.hpp"
#include "report/sinks.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

/// How long a dry run waits for a message, where nothing is known of the model yet.
constexpr double kFirstPassSeconds = 300;

struct TrainArguments {
    PlanArguments plan;
    std::string profile;
    bool dry_run = false;
};

void make_run_folder(const Job& job) {
    const fs::path folder = job.plan.run.dir;
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) {
        throw Error(ErrorKind::Output, "cannot make the run folder " + folder.string() + ": " + error.message() +
                                           "; set run.dir to a folder that can be written");
    }
}

/// This job's hold on its run folder. What an earlier run has left there is replaced when this one goes on from it: a
/// training that is refused changes nothing.
class RunFolder {
  public:
    /// Tried before anything long begins. Calls: local; keepers of a folder.
    void lock(const Job& job) {
        if (!lock_.empty()) return;
        make_run_folder(job);
        lock_ = lock_run_folder(job.plan.run.dir);
        job.log->add_file((fs::path(job.plan.run.dir) / run_files::kLog).string());
    }

    /// A run begins here, or goes on.  Calls: every rank, once the keepers have locked.
    void take(const Job& job) {
        if (std::exchange(is_taken_, true)) return;
        const fs::path folder = job.plan.run.dir;
        if (!lock_.empty()) {
            write_file_durably(folder / run_files::kPlan, job.plan.resolved_text);
            forget_run_end(folder);
        }
        barrier(job.transport);
        job.end.open(folder);
    }

    /// Whether no run has begun here before: then how this one ends, whatever it may be, is told here.
    static bool is_new(const Job& job) {
        ByteWriter writer;
        std::error_code ignored;
        writer.put(!fs::exists(fs::path(job.plan.run.dir) / run_files::kPlan, ignored));
        bool is_new = true;
        for (const Bytes& bytes : all_gather(job.transport, writer.take())) {
            is_new = ByteReader(bytes).get<bool>() && is_new;
        }
        return is_new;
    }

  private:
    RunLock lock_;  ///< empty: not taken, or another rank keeps the folder
    bool is_taken_ = false;
};

/// Rank 0's listeners; files are opened when it is known what of the run folder is of this run's past, since the rest
/// is cut off then.
void listen(Reporters& reporters, Display& display, const Job& job, int64_t last_own_step) {
    reporters.add(display.reporter());
    add_sinks(reporters, {job.plan.run.dir, last_own_step, job.log});
}

void greet(const Job& job, const Program& program) {
    int64_t parameters = 0;
    for (const StageSpec& stage : program.training.split.stages) parameters += stage.num_parameters;
    job.log->info(counted_text(parameters, "parameter") + " in " +
                  counted_text(program.training.split.num_stages(), "stage") + " on " +
                  counted_text(program.mesh.num_ranks(), "rank") + ", " + program.training.schedule.name + ", " +
                  numeric_environment(job.plan, job.device).text());
    if (program.balance) job.log->info("AUTO split: " + balance_text(*program.balance, program.cost_unit));
    say_warnings(job, program, program.training.graph);
}

void say_how_to_stop(const Job& job) {
    const auto slurm = environment_of({"SLURM_JOB_ID"});
    const std::string id = slurm.empty() ? "JOBID" : printable(slurm.begin()->second);
    const bool is_bare_mpirun = job.transport.size() > 1 && !is_started_by_run();
    if (job.is_started_by_srun) {
        job.log->info("to stop: scancel --signal=USR1 " + id + " saves and exits 85; scancel " + id +
                      ", which sends SIGTERM, leaves Slurm's KillWait (30 s by default) for that");
    } else if (is_bare_mpirun) {
        job.log->info(
            "to stop: SIGUSR1 to mpirun saves and exits 85; Ctrl-C and SIGTERM leave about a second for that");
    } else {
        job.log->info("to stop: SIGUSR1, SIGTERM and Ctrl-C save and exit 85");
    }
}

int say_stopped(const Job& job, const TrainResult& result) {
    if (job.is_first()) {
        const std::string done = "stopped after step " + std::to_string(result.last_step) + " as asked by a signal; ";
        const std::string kept =
            result.checkpoint.empty() ? "no step was done since the start" : "saved in " + result.checkpoint.string();
        job.log->info(done + kept + "; " + how_to_go_on(job.plan.checkpoint.resume) + " from there");
        job.end.write(exit_code(ErrorKind::Stopped), done + kept);
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

/// Before anything is loaded: every rank must do the same.
std::optional<ProfileRequest> profile_request(const Job& job, const std::string& text) {
    check_equal(job.transport, "--profile", text);
    if (text.empty()) return std::nullopt;
    return ProfileRequest{parse_profile_steps(text), {}};
}

/// An earlier run may have made more steps than this plan wants.
void say_done(const Job& job, const TrainResult& result, int64_t total) {
    const bool is_beyond = result.first_step > total;
    const std::string wanted = std::to_string(total), had = std::to_string(result.first_step);
    const std::string done = (is_beyond ? had : wanted) + " steps are done";
    if (result.checkpoint.empty()) {
        job.log->info("nothing to do: " + (is_beyond ? done + ", the plan wants " + wanted : had + " of " + done));
    }
    job.end.write(0, done);
}

int train_on(const Job& job, const TrainArguments& arguments) {
    const std::optional<ProfileRequest> profile = profile_request(job, arguments.profile);
    Datasets data = open_datasets(job.plan, job.first_log());
    RunFolder run_folder;
    provide_costs(job.transport, job.plan, data, job.device, job.log, [&] { run_folder.lock(job); });
    Prepared prepared = agree_on_program(job.transport, job.plan, data, job.device);
    guard_ranges(data, prepared.program.training.graph);
    make_run_folder(job);
    const RunFolders folders = RunFolders::find(job.transport, job.plan.run.dir);
    if (folders.keeps(job.transport.rank())) run_folder.lock(job);
    if (job.is_first()) {
        greet(job, prepared.program);
        say_how_to_stop(job);
        if (!folders.is_one()) {
            job.log->info("the ranks do not share a run folder, so each keeps its own shards: " + folders.text());
        }
    }
    if (RunFolder::is_new(job)) run_folder.take(job);
    Engine engine(job.plan, prepared.program, prepared.sources, data, job.transport);
    std::optional<Display> display;
    if (job.is_first()) display.emplace(job);
    Reporters reporters;
    TrainOptions options;
    options.reporter = job.is_first() ? &reporters : nullptr;
    options.log = job.log;
    options.ranks_exceed_cores = job.ranks_exceed_cores;
    options.resumed = [&](int64_t step) {
        run_folder.take(job);
        if (display) listen(reporters, *display, job, step);
    };
    options.stop_request = stop_signals::came;
    options.stop_point = stop_point_of(job);
    options.folders = folders;
    options.profile = profile;
    if (profile && display) options.profile->show = [&](const std::string& drawing) { display->print(drawing); };
    const TrainResult result = train(engine, job.plan, prepared.program, options);
    if (result.stopped) return say_stopped(job, result);
    if (job.is_first()) say_done(job, result, engine.total_steps());
    return 0;
}

/// One microbatch with the weights of the model file; no run folder is looked at.
int rehearse_on(const Job& job) {
    Datasets data = open_datasets(job.plan, job.first_log());
    Prepared prepared = agree_on_program(job.transport, job.plan, data, job.device);
    guard_ranges(data, prepared.program.training.graph);
    if (job.is_first()) greet(job, prepared.program);
    job.transport.set_deadline(std::max(kFirstPassSeconds, job.plan.run.deadline_floor_s));
    const Program one = one_microbatch(prepared.program, message_order(job.plan));
    Engine engine(job.plan, one, prepared.sources, data, job.transport);
    RehearsalReport report = rehearse(engine, one, prepared.program);
    report.are_waits_known = !job.ranks_exceed_cores;
    if (job.is_first()) std::cout << rehearsal_text(report) << std::flush;
    if (std::isfinite(report.loss)) return 0;
    throw Error(ErrorKind::NotFinite, "the loss of the first microbatch is not finite; look at the data and the model");
}

int run_train(const TrainArguments& arguments) {
    if (!arguments.profile.empty()) parse_profile_steps(arguments.profile);
    if (!arguments.dry_run) stop_signals::listen();
    // What is recomputed for all microbatches but the last one is recomputed for the only one.
    const auto adapt = [&](Plan& plan) {
        if (arguments.dry_run) plan.pipeline.recompute.except_last = false;
    };
    const auto body = [&](const Job& job) {
        check_trains(job.plan);
        check_length(job.plan);
        if (!arguments.dry_run) check_replaced_plan(job.plan, registered_names());
        return arguments.dry_run ? rehearse_on(job) : train_on(job, arguments);
    };
    return run_job(arguments.plan, body, adapt);
}

}  // namespace

void add_train(CLI::App& app, Chosen& chosen) {
    const auto arguments = std::make_shared<TrainArguments>();
    CLI::App& command =
        add_command(app, "train", "train; start it with mpirun -np RANKS", "mpirun -np 4 vpp train plan.toml");
    add_plan_options(command, arguments->plan);
    CLI::Option* profile = command.add_option("--profile", arguments->profile,
                                              "write traces of steps: 5 (behind the first two) or 10..12");
    profile->type_name("STEPS");
    command.add_flag("--dry-run", arguments->dry_run, "one microbatch forward and backward; no update, no file")
        ->excludes(profile);
    command.callback([arguments, &chosen] { chosen = [arguments] { return run_train(*arguments); }; });
}

}  // namespace vpp
