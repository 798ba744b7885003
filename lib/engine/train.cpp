#include "engine/train.hpp"

#include <algorithm>
#include <chrono>

#include "base/error.hpp"
#include "comm/collective.hpp"
#include "engine/checkpointing.hpp"

namespace vpp {

namespace {

using Clock = std::chrono::steady_clock;

// Until a step has been measured: loading, allocating and the first step are slower than any later one.
constexpr double kFirstStepSeconds = 300;

// The first step of a run makes what stays, such as the optimizer's state.
constexpr int64_t kMeasuredSteps = 2;

/// Tokens of a sample; 0 when the data are not tokens.
int64_t tokens_per_sample(const Plan& plan) {
    return plan.data.kind == "tokens" || plan.data.kind == "text" ? plan.data.sequence_length : 0;
}

class Trainer {
  public:
    Trainer(Engine& engine, const Plan& plan, const Program& program, CheckpointStore& store,
            const TrainOptions& options)
        : engine_(engine), plan_(plan), program_(program), store_(store), options_(options) {}

    TrainResult run() {
        engine_.transport().set_deadline(std::max(kFirstStepSeconds, plan_.run.deadline_floor_s));
        engine_.set_stop_request(options_.stop_request);
        TrainResult result;
        result.first_step = resume_checkpoint(engine_, plan_, program_, store_, options_.log).value_or(0);
        if (engine_.transport().rank() == 0) set_aside_later_checkpoints(result.first_step);
        if (options_.resumed) options_.resumed(result.first_step);
        const int64_t total = engine_.total_steps();
        stop_if_asked();
        if (result.first_step == 0) evaluate_if_due(0);
        started_ = Clock::now();
        int64_t step = result.first_step;
        while (step < total && !stopping_) {
            const StepResult done = engine_.run_step(step++);
            stopping_ = done.totals.stop && step < total;
            report(step, result.first_step, done);
            if (step == result.first_step + kMeasuredSteps || step == total) report_memory(step);
            evaluate_if_due(step);
            save_if_due(step, result);
            adapt_deadline(done);
        }
        result.stopped = stopping_;
        result.last_step = step;
        return result;
    }

  private:
    /// Where no step tells it: after loading and after a save.
    void stop_if_asked() {
        ByteWriter writer;
        writer.put(options_.stop_request());
        for (const Bytes& bytes : all_gather(engine_.transport(), writer.take())) {
            stopping_ = ByteReader(bytes).get<bool>() || stopping_;
        }
    }

    void set_aside_later_checkpoints(int64_t first_step) {
        for (const std::filesystem::path& place : store_.set_aside_after(first_step)) {
            options_.log->warn("a checkpoint of a later step than the one this run goes on from is now " +
                               place.string());
        }
    }

    bool is_due(int64_t every, int64_t step) const { return every > 0 && step % every == 0; }

    void evaluate_if_due(int64_t step) {
        const bool last = step == engine_.total_steps();
        if (stopping_ || plan_.train.eval_every <= 0 || !(last || is_due(plan_.train.eval_every, step))) return;
        engine_.transport().set_position("evaluating after step " + std::to_string(step));
        const EvaluationResult result = engine_.evaluate();
        stopping_ = result.stopped;
        if (stopping_) return;
        if (options_.reporter) options_.reporter->evaluation({step, result.loss, result.samples, result.seconds});
    }

    void save_if_due(int64_t step, TrainResult& result) {
        const bool is_last = stopping_ || step == engine_.total_steps();
        if (!is_last && !is_due(plan_.checkpoint.every, step)) return;
        const auto start = Clock::now();
        SaveResult saved = save(step);
        while (is_last && saved.folder.empty()) saved = save(step);
        if (saved.folder.empty()) return;
        result.checkpoint = saved.folder;
        if (step < engine_.total_steps()) stop_if_asked();
        report_save(step, saved, std::chrono::duration<double>(Clock::now() - start).count());
    }

    /// A save that fails is tried again when the next one is due; too many in a row end the job.
    SaveResult save(int64_t step) {
        SaveResult saved = save_checkpoint(engine_, plan_, program_, store_, step);
        if (!saved.note.empty()) options_.log->warn("older checkpoints stay: " + saved.note);
        failed_saves_ = saved.problem.empty() ? 0 : failed_saves_ + 1;
        if (failed_saves_ == 0) return saved;
        const std::string text = "the save of step " + std::to_string(step) + " failed (" + saved.problem +
                                 "); the checkpoints before it are as they were";
        if (failed_saves_ < plan_.checkpoint.max_failures) {
            if (engine_.transport().rank() == 0) options_.log->warn(text);
            return saved;
        }
        throw Error(ErrorKind::Io, text + ". " + std::to_string(failed_saves_) +
                                       " saves in a row failed (checkpoint.max_failures): make room, then start the "
                                       "same command again");
    }

    void report_save(int64_t step, const SaveResult& saved, double seconds) const {
        if (!options_.reporter) return;
        int64_t size_bytes = 0;
        for (const ShardRecord& shard : CheckpointReader(saved.folder).manifest().shards) {
            size_bytes += static_cast<int64_t>(shard.size_bytes);
        }
        options_.reporter->saved({step, saved.folder.string(), size_bytes, seconds});
    }

    void report(int64_t step, int64_t first_step, const StepResult& done) {
        if (!options_.reporter) return;
        StepEvent event;
        event.step = step;
        event.total_steps = engine_.total_steps();
        event.loss = done.loss;
        event.microbatch_losses = done.microbatch_losses;
        event.grad_norm = done.grad_norm;
        event.clipped = done.clipped;
        event.lr = done.lr;
        event.samples_per_second = static_cast<double>(*plan_.train.global_batch_size) / done.seconds;
        event.tokens_per_second = event.samples_per_second * static_cast<double>(tokens_per_sample(plan_));
        event.step_ms = done.seconds * 1e3;
        event.memory_bytes = done.totals.memory_bytes;
        event.activation_bytes = done.totals.activation_bytes;
        const double elapsed = std::chrono::duration<double>(Clock::now() - started_).count();
        event.eta_seconds =
            elapsed / static_cast<double>(step - first_step) * static_cast<double>(event.total_steps - step);
        if (!options_.ranks_exceed_cores) add_bubble(event, done.totals);
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
    CheckpointStore& store_;
    const TrainOptions& options_;
    Clock::time_point started_;
    double slowest_seconds_ = 0;
    bool is_memory_known_ = false;
    bool stopping_ = false;  ///< agreed by all ranks
    int failed_saves_ = 0;   ///< in a row
};

}  // namespace

TrainResult train(Engine& engine, const Plan& plan, const Program& program, CheckpointStore& store,
                  const TrainOptions& options) {
    return Trainer(engine, plan, program, store, options).run();
}

}  // namespace vpp
