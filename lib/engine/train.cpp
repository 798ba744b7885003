#include "engine/train.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/elapsed.hpp"
#include "base/error.hpp"
#include "base/run_files.hpp"
#include "base/units.hpp"
#include "checkpoint/folder_names.hpp"
#include "checkpoint/going_on.hpp"
#include "checkpoint/survey.hpp"
#include "comm/collective.hpp"
#include "engine/checkpointing.hpp"
#include "engine/profiler.hpp"
#include "engine/reading_time.hpp"
#include "engine/saver.hpp"
#include "engine/step_prediction.hpp"
#include "engine/stragglers.hpp"
#include "program/estimate.hpp"
#include "report/pipeline_times.hpp"
#include "report/sinks.hpp"

namespace vpp {

namespace {

// Until a step has been measured: loading, allocating and the first step are slower than any later one.
constexpr double kFirstStepSeconds = 300;

// The first step of a run makes what stays, such as the optimizer's state.
constexpr int64_t kMeasuredSteps = 2;

/// Tokens of a sample; 0 when the data are not tokens.
int64_t tokens_per_sample(const Plan& plan) {
    return plan.data.kind == "tokens" || plan.data.kind == "text" ? plan.data.sequence_length : 0;
}

/// The fact of a checkpoint that holds StepGuard::memory.
constexpr const char* kGuardMemory = "step_guard";
/// The same for LossScaler::memory.
constexpr const char* kScalerMemory = "loss_scaler";

class Trainer {
  public:
    Trainer(Engine& engine, const Plan& plan, const Program& program, const TrainOptions& options)
        : engine_(engine),
          plan_(plan),
          program_(program),
          options_(options),
          saver_(engine, plan, program, options.stop_point, options.folders),
          stragglers_(static_cast<size_t>(engine.transport().size())),
          pipeline_(program.training.schedule, !options.ranks_exceed_cores),
          prediction_(program, options.ranks_exceed_cores) {}

    TrainResult run() {
        set_first_deadline();
        engine_.set_stop_request(options_.stop_request);
        engine_.set_save_request([this] { return is_save_due_by_time(); });
        first_step_ = resume();
        set_first_deadline();
        open_profile();
        take_folder();
        stop_if_asked();
        make_up_for_evaluation();
        started_ = saved_ = Clock::now();
        result_.first_step = result_.last_step = first_step_;
        try {
            run_steps();
            if (profiler_) profiler_->finish();
        } catch (const Error& error) {
            // All ranks stop here together: what was saved before is kept.
            if (error.kind() == ErrorKind::NotFinite && saver_.is_saving()) settle(saver_.finish());
            throw;
        }
        result_.stopped = stopping_;
        if (options_.reporter && pipeline_.num_steps() > 0) options_.reporter->pipeline(pipeline_.mean());
        return result_;
    }

  private:
    int rank() const { return engine_.transport().rank(); }

    void set_first_deadline() {
        engine_.transport().set_deadline(std::max(kFirstStepSeconds, plan_.run.deadline_floor_s));
    }

    /// Where no step tells it: after loading and after a save.
    void stop_if_asked() {
        ByteWriter writer;
        writer.put(options_.stop_request());
        for (const Bytes& bytes : all_gather(engine_.transport(), writer.take())) {
            stopping_ = ByteReader(bytes).get<bool>() || stopping_;
        }
    }

    /// The step it goes on from; 0 at the beginning.
    int64_t resume() {
        CheckpointStore store(plan_.run.dir);
        const auto state = resume_checkpoint(engine_, plan_, program_, store, options_.log, options_.folders);
        const int64_t step = state ? state->step : 0;
        is_evaluated_ = state && state->facts.contains(kValidationLoss);
        if (state && state->facts.contains(kGuardMemory)) engine_.guard().restore(state->facts.at(kGuardMemory));
        if (state && engine_.loss_scaler() && state->facts.contains(kScalerMemory)) {
            engine_.loss_scaler()->restore(state->facts.at(kScalerMemory));
        }
        return step;
    }

    /// The run folder is this run's from here on. Keepers read and delete much where earlier saves have left much.
    void take_folder() {
        engine_.transport().set_position("clearing away what earlier saves left in " + plan_.run.dir);
        ReadingTime time(engine_.transport(), bytes_to_clear());
        check_room();
        time.wait_for_all();  // no run folder is changed before every rank has room
        if (is_done_by_named()) return;
        if (options_.resumed) options_.resumed(last_own_step());
        if (options_.folders.keeps(rank())) leave_own_past();
        time.wait_for_all();
    }

    /// What a keeper reads or deletes, at most.
    uint64_t bytes_to_clear() const {
        if (!options_.folders.keeps(rank())) return 0;
        const uint64_t metrics = size_of_sinks(plan_.run.dir);
        try {
            return metrics + size_of_checkpoints(plan_.run.dir);
        } catch (const Error&) {
            return metrics;  // who clears says why
        }
    }

    /// Nothing follows the checkpoint that the plan names, so what another past has left is in nobody's way.
    bool is_done_by_named() const { return is_named() && first_step_ >= engine_.total_steps() && !lacks_evaluation(); }

    /// Of what lies in the run folder.
    void leave_own_past() {
        CheckpointStore store(plan_.run.dir);
        set_aside_others(store);
        if (first_step_ > 0 && first_step_ >= engine_.total_steps()) tidy(store);
    }

    /// A run that is done saves no more, so what its last save may have left is cleared away here.
    void tidy(CheckpointStore& store) {
        const CheckpointPlan& keep = plan_.checkpoint;
        try {
            store.tidy(keep.keep, keep.keep_every, keep.keep_best);
        } catch (const Error& error) {
            options_.log->warn(std::string("older checkpoints stay: ") + error.what());
        }
    }

    void open_profile() {
        if (!options_.profile || first_step_ >= engine_.total_steps()) return;
        const StepRange steps = profiled_steps(options_.profile->steps, first_step_, engine_.total_steps());
        profiler_.emplace(engine_.transport(), program_, std::filesystem::path(plan_.run.dir) / run_files::kProfile,
                          steps, options_.log, options_.profile->show);
    }

    /// What a dead save left takes the room of the next one. What is no part of this run stays, as it may be refused.
    void remove_left_overs(CheckpointStore& store) {
        try {
            store.remove_left_overs(last_own_step());
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::Io) throw;
            options_.log->warn(std::string("what dead saves left stays: ") + error.what());
        }
    }

    /// A run whose first save must fail is not begun.
    void check_room() {
        ByteWriter own;
        own.put(engine_.full_state_bytes());
        const std::vector<Bytes> all = all_gather(engine_.transport(), own.take());
        int64_t needed = 0;  // of all ranks that see this rank's folder
        for (size_t other = 0; other < all.size(); ++other) {
            const bool is_here = options_.folders.keeper_of(static_cast<int>(other)) == rank();
            if (is_here) needed += ByteReader(all[other]).get<int64_t>();
        }
        if (!options_.folders.keeps(rank()) || first_step_ >= engine_.total_steps()) return;
        CheckpointStore store(plan_.run.dir);
        remove_left_overs(store);
        std::error_code error;
        const auto space = std::filesystem::space(store.disk(), error);
        if (error) return;
        const auto available = static_cast<int64_t>(std::min<uintmax_t>(space.available, INT64_MAX));
        const int64_t kept = std::ranges::count_if(store.list(), [&](const std::filesystem::path& checkpoint) {
            return parse_step_folder(checkpoint.filename().string())->step <= last_own_step();
        });
        const int64_t wanted = std::max<int64_t>(1, plan_.checkpoint.keep + 1 - kept);
        const std::string text = "a checkpoint takes about " + bytes_text(needed) + ", and " + store.disk().string() +
                                 " has " + bytes_text(available) + " free";
        if (available < needed) throw Error(ErrorKind::Io, text + "; make room, or name another run.dir");
        if (available / wanted < needed) {
            options_.log->warn(text + "; checkpoint.keep asks for room for " + std::to_string(wanted) + " more");
        }
    }

    void run_steps() {
        const int64_t total = engine_.total_steps();
        int64_t& step = result_.last_step;
        while (step < total && !stopping_) {
            if (profiler_) {
                profiler_->before(step + 1);
                engine_.executor().time_messages(profiler_->is_open());
            }
            const StepResult done = engine_.run_step(step++);
            tell_of_recordings(done.totals);
            if (profiler_) profiler_->after(step, done.moments, engine_.executor().spans(), done.reads);
            stopping_ = done.totals.stop && step < total;
            report(step, done);
            const bool is_usual = step >= first_step_ + kMeasuredSteps && !done.went_through_host;
            if (is_usual || step == total) report_memory(step);
            evaluate_if_due(step);
            if (const auto saved = saver_.poll()) settle(*saved);
            save_if_due(step, done.totals.save);
            adapt_deadline(done);
        }
    }

    /// A later restart would else go on from checkpoints that are not of this run's past.
    void set_aside_others(CheckpointStore& store) {
        for (const std::filesystem::path& place : store.set_aside_after(last_own_step())) {
            options_.log->warn((goes_on_from_elsewhere()
                                    ? "a checkpoint of another run than the one this run goes on from is now "
                                    : "a checkpoint of a later step than the one this run goes on from is now ") +
                               place.string());
        }
    }

    /// Checkpoints of later steps in the run folder are not of this run's past; -1: none is.
    int64_t last_own_step() const { return goes_on_from_elsewhere() ? -1 : first_step_; }

    bool goes_on_from_elsewhere() const {
        namespace fs = std::filesystem;
        const fs::path own = fs::path(plan_.run.dir) / run_files::kCheckpoints;
        return is_named() &&
               fs::weakly_canonical(fs::path(plan_.checkpoint.resume) / "..") != fs::weakly_canonical(own);
    }

    /// Whether the plan names a checkpoint.
    bool is_named() const { return plan_.checkpoint.resume != "auto" && plan_.checkpoint.resume != "no"; }

    bool is_due(int64_t every, int64_t step) const { return every > 0 && step % every == 0; }

    bool is_evaluation_due(int64_t step) const {
        return plan_.train.eval_every > 0 && (step == engine_.total_steps() || is_due(plan_.train.eval_every, step));
    }

    void evaluate_if_due(int64_t step) {
        if (stopping_ || !is_evaluation_due(step)) return;
        engine_.transport().set_position("evaluating after step " + std::to_string(step));
        const EvaluationResult result = engine_.evaluate();
        stopping_ = result.stopped;
        if (stopping_) return;
        evaluation_ = {step, result.loss};
        if (!options_.reporter) return;
        if (!result.remark.empty()) options_.log->warn("after step " + std::to_string(step) + ": " + result.remark);
        options_.reporter->evaluation(
            {step, result.loss, result.samples, result.seconds, result.accuracy, result.perplexity});
    }

    /// The run that came to the first step may have been stopped before it could evaluate.
    bool lacks_evaluation() const {
        return !is_evaluated_ && first_step_ <= engine_.total_steps() && is_evaluation_due(first_step_);
    }

    /// What comes of it joins the checkpoint, so that this is done once.
    void make_up_for_evaluation() {
        if (!lacks_evaluation()) return;
        evaluate_if_due(first_step_);
        if (first_step_ == 0 || evaluation_.step != first_step_) return;
        saver_.start(first_step_, notes(first_step_));
        settle(saver_.finish());
    }

    /// Rank 0's clock decides for all.
    bool is_save_due_by_time() const {
        const double seconds = seconds_since(saved_);
        return engine_.transport().rank() == 0 && plan_.checkpoint.every_minutes > 0 &&
               seconds >= plan_.checkpoint.every_minutes * 60;
    }

    void save_if_due(int64_t step, bool is_due_by_time) {
        const auto is_last = [&] { return stopping_ || step == engine_.total_steps(); };
        const CheckpointPlan& saves = plan_.checkpoint;
        const bool is_due_by_step = is_due(saves.every, step) || is_due(saves.keep_every, step);
        if (!is_last() && !is_due_by_time && !is_due_by_step) return;
        if (saver_.is_saving()) settle(saver_.finish());
        engine_.check_weights(step);
        warn_of_buffers(step);
        bool is_saved = false;
        do {
            saver_.start(step, notes(step));
            saved_ = Clock::now();
            if (!is_last() && plan_.checkpoint.background) return;
            is_saved = settle(saver_.finish());
            if (step < engine_.total_steps()) stop_if_asked();  // then this save is the last one
            if (is_last() && !is_saved) wait_for_the_disk();
        } while (is_last() && !is_saved);
    }

    /// Training does not go by running statistics, so it could go on for long with damaged ones.
    void warn_of_buffers(int64_t step) {
        if (is_buffer_told_) return;
        const std::optional<std::string> damaged = engine_.find_damaged_buffer();
        if (!damaged) return;
        is_buffer_told_ = true;
        options_.log->warn("a step up to " + std::to_string(step) + " has made the buffer '" + printable(*damaged) +
                           "' not finite, by which evaluation goes; it is saved as it is");
    }

    /// No step comes before the next try that would give it time.
    void wait_for_the_disk() const {
        std::this_thread::sleep_for(std::chrono::duration<double>(failed_saves_ * options_.retry_pause_seconds));
    }

    /// What a checkpoint holds beside the facts of the run.
    std::map<std::string, std::string> notes(int64_t step) {
        std::map<std::string, std::string> notes;
        if (plan_.train.on_spike != "off" || plan_.train.on_nonfinite != "stop") {
            notes[kGuardMemory] = engine_.guard().memory();
        }
        if (engine_.loss_scaler()) notes[kScalerMemory] = engine_.loss_scaler()->memory();
        if (evaluation_.step == step) notes[kValidationLoss] = formatted("%.17g", evaluation_.loss);
        return notes;
    }

    /// A save has ended. One that failed is tried again when the next one is due; too many in a row end the job.
    /// Whether it succeeded.
    bool settle(const SaveResult& saved) {
        const bool is_first = engine_.transport().rank() == 0;
        if (!saved.note.empty() && is_first) options_.log->warn("older checkpoints stay: " + saved.note);
        if (saved.problem.empty()) {
            failed_saves_ = 0;
            result_.checkpoint = saved.folder;
            if (options_.reporter) {
                options_.reporter->saved(
                    {saved.step, saved.folder.string(), saved.size_bytes, saved.seconds, saved.pause_seconds});
            }
            return true;
        }
        const std::string text = "the save of step " + std::to_string(saved.step) + " failed (" + saved.problem +
                                 "); the checkpoints before it are as they were";
        if (++failed_saves_ >= plan_.checkpoint.max_failures) {
            throw Error(ErrorKind::Io, text + ". " + std::to_string(failed_saves_) +
                                           " saves in a row failed (checkpoint.max_failures): make room, then " +
                                           how_to_go_on(plan_.checkpoint.resume));
        }
        if (is_first) options_.log->warn(text);
        return false;
    }

    /// Once: rank 0 of all that are made, each rank of those of its own that cannot be.
    void tell_of_recordings(const StepTotals& totals) {
        if (options_.reporter && totals.recorded_segments > 0 && !std::exchange(recordings_are_told_, true)) {
            const int64_t all = totals.recorded_segments + totals.by_op_segments;
            options_.log->info("CUDA graphs: the ops of " + std::to_string(totals.recorded_segments) + " of " +
                               counted_text(all, "segment") + " are recorded, and replayed from now on");
        }
        const std::string problems = engine_.recording_problems();
        if (problems == std::exchange(recording_problems_, problems)) return;
        options_.log->info("CUDA graphs: op by op, as it cannot be recorded: " + problems);
    }

    void report(int64_t step, const StepResult& done) {
        if (!options_.reporter) return;
        if (!done.remark.empty()) options_.log->warn(done.remark);
        if (const auto line = prediction_.add(done.totals.actions_seconds)) {
            options_.log->info(*line);
        }
        StepEvent event;
        event.step = step;
        event.total_steps = engine_.total_steps();
        event.loss = done.loss;
        event.microbatch_losses = done.microbatch_losses;
        event.grad_norm = done.grad_norm;
        event.clipped = done.clipped;
        event.skipped = !done.updated;
        event.loss_scale = done.loss_scale;
        event.lr = done.lr;
        event.samples_per_second = static_cast<double>(*plan_.train.global_batch_size) / done.seconds;
        event.tokens_per_second = event.samples_per_second * static_cast<double>(tokens_per_sample(plan_));
        event.step_ms = done.seconds * 1e3;
        event.flops = step_flops(program_);
        event.reduce_ms = done.totals.reduce_seconds * 1e3;
        event.memory_bytes = done.totals.memory_bytes;
        event.activation_bytes = done.totals.activation_bytes;
        const double elapsed = seconds_since(started_);
        event.eta_seconds =
            elapsed / static_cast<double>(step - first_step_) * static_cast<double>(event.total_steps - step);
        pipeline_.fill(event, done.totals.stages, done.totals.actions_seconds);
        const bool is_usual = step > first_step_ + kMeasuredSteps || event.total_steps <= first_step_ + kMeasuredSteps;
        if (is_usual) pipeline_.add(step, done.totals.stages, done.totals.actions_seconds);
        if (!options_.ranks_exceed_cores) {
            add_bubble(event, done.totals);
            for (const std::string& sentence : stragglers_.look(done.totals.busy_seconds)) options_.log->warn(sentence);
        }
        options_.reporter->step(event);
    }

    void report_memory(int64_t step) {
        if (is_memory_known_) return;
        is_memory_known_ = true;
        MemoryEvent event = engine_.measure_memory();
        event.step = step;
        if (options_.reporter) options_.reporter->memory(event);
    }

    static void add_bubble(StepEvent& event, const StepTotals& totals) {
        const auto& waits = totals.wait_seconds;
        double sum = 0;
        for (double wait : waits) sum += wait;
        const auto worst = std::max_element(waits.begin(), waits.end());
        event.bubble_mean = sum / static_cast<double>(waits.size()) / totals.slowest_seconds;
        event.bubble_worst = *worst / totals.slowest_seconds;
        event.worst_rank = static_cast<int>(worst - waits.begin());
    }

    /// No wait of a healthy step lasts longer than the slowest step did, by a generous factor.
    void adapt_deadline(const StepResult& done) {
        slowest_seconds_ = std::max(slowest_seconds_, done.totals.slowest_seconds);
        const double deadline = std::max(plan_.run.deadline_floor_s, plan_.run.deadline_factor * slowest_seconds_);
        engine_.transport().set_deadline(deadline);
    }

    Engine& engine_;
    const Plan& plan_;
    const Program& program_;
    const TrainOptions& options_;
    Saver saver_;
    Stragglers stragglers_;
    bool is_buffer_told_ = false;
    PipelineTimes pipeline_;
    StepPrediction prediction_;
    std::optional<Profiler> profiler_;
    int64_t first_step_ = 0;
    bool is_evaluated_ = false;  ///< the first step, by the run that came to it
    bool recordings_are_told_ = false;
    std::string recording_problems_;
    TrainResult result_;
    Clock::time_point started_;
    Clock::time_point saved_;  ///< when the last save began, or the training
    struct {
        int64_t step = -1;
        double loss = 0;
    } evaluation_;  ///< the last one
    double slowest_seconds_ = 0;
    bool is_memory_known_ = false;
    bool stopping_ = false;  ///< agreed by all ranks
    int failed_saves_ = 0;   ///< in a row
};

}  // namespace

TrainResult train(Engine& engine, const Plan& plan, const Program& program, const TrainOptions& options) {
    return Trainer(engine, plan, program, options).run();
}

}  // namespace vpp
