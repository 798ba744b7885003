#include "engine/saver.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <random>
#include <thread>

#include "base/error.hpp"
#include "base/units.hpp"
#include "comm/collective.hpp"
#include "engine/run_facts.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kFirstLook{1}, kLongestLook{20};

// Looks that are further apart mean that this process itself did not run.
constexpr double kLongestGapSeconds = 1;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

/// A name for a save that no earlier save of this folder has.
std::string new_save_id() {
    std::random_device device;
    return to_hex({(uint64_t{device()} << 32) | device(), (uint64_t{device()} << 32) | device()});
}

/// Runs a part of a save unless there was a problem before; a failing disk is one.
void attempt(std::string& problem, const std::function<void()>& part) {
    if (!problem.empty()) return;
    try {
        part();
    } catch (const Error& error) {
        if (error.kind() != ErrorKind::Io) throw;
        problem = error.what();
    }
}

/// Runs work in a thread of its own; the future waits for nothing when it is dropped.
template <class Result>
std::future<Result> launch(std::function<Result()> work) {
    std::packaged_task<Result()> task(std::move(work));
    std::future<Result> result = task.get_future();
    std::thread(std::move(task)).detach();
    return result;
}

template <class Result>
bool is_ready(const std::future<Result>& result) {
    return result.valid() && result.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

template <class Result>
bool is_running(const std::future<Result>& result) {
    return result.valid() && !is_ready(result);
}

/// Why a save would fail, as far as it can be known before anything is written; the headers of shards come on top.
std::string problem_ahead(const std::string& folder, uint64_t needed_bytes) {
    std::error_code error;
    const fs::space_info space = fs::space(folder, error);
    if (error || space.available >= needed_bytes) return "";
    return "it takes " + bytes_text(static_cast<int64_t>(needed_bytes)) + ", and " + folder + " has " +
           bytes_text(static_cast<int64_t>(space.available)) + " free";
}

}  // namespace

/// What rank 0's thread has done first.
struct Saver::Begun {
    std::string save_id;
    std::string problem;
};

/// What the thread of a rank has done.
struct Saver::Written {
    ShardRecord shard;
    std::string problem;
};

/// What rank 0's thread has done last.
struct Saver::Committed {
    fs::path folder;
    std::string problem;
    std::string note;
    double seconds = 0;
};

/// The save under way.
struct Saver::Save {
    int64_t step = 0;
    std::map<std::string, std::string> notes;
    Clock::time_point start = Clock::now();
    double pause_seconds = 0;
    enum class Phase { Beginning, Writing, Committing } phase = Phase::Beginning;  ///< the same on every rank
    std::string save_id;
    int64_t size_bytes = 0;
    std::future<Begun> beginning;  ///< rank 0's
    std::future<Written> writing;
    std::optional<Written> written;     ///< by this rank
    std::future<Committed> committing;  ///< rank 0's
    uint64_t last_sign = 0;
    Clock::time_point last_life = start, last_look = start;

    bool is_at_work() const { return is_running(beginning) || is_running(writing) || is_running(committing); }
};

Saver::Saver(Engine& engine, const Plan& plan, const Program& program, StopHook stop)
    : engine_(engine),
      plan_(plan),
      program_(program),
      signs_of_life_(std::make_shared<std::atomic<uint64_t>>(0)),
      state_(std::make_shared<StateCopy>()) {
    const auto hook = [signs = signs_of_life_, stop = std::move(stop)](std::string_view point) {
        ++*signs;
        reached(stop, point);
    };
    store_ = std::make_shared<CheckpointStore>(plan.run.dir, hook);
}

Saver::~Saver() = default;

void Saver::start(int64_t step, std::map<std::string, std::string> notes) {
    check(!is_saving(), "one save is under way at a time");
    save_ = std::make_unique<Save>();
    save_->step = step;
    save_->notes = std::move(notes);
    const std::vector<StateTensor> state = engine_.state();
    plan_.checkpoint.background ? state_->take(state) : state_->borrow(state);

    ByteWriter own;
    own.put(state_->size_bytes());
    uint64_t all_bytes = 0;
    for (const Bytes& bytes : gather(engine_.transport(), own.take())) all_bytes += ByteReader(bytes).get<uint64_t>();
    if (engine_.transport().rank() == 0) begin(all_bytes);
    save_->pause_seconds = seconds_since(save_->start);
}

/// Rank 0's thread: makes the folder.
void Saver::begin(uint64_t needed_bytes) {
    save_->beginning = launch<Begun>([store = store_, folder = plan_.run.dir, step = save_->step, needed_bytes] {
        Begun begun{new_save_id(), problem_ahead(folder, needed_bytes)};
        attempt(begun.problem, [&] { store->begin(step, begun.save_id); });
        return begun;
    });
}

std::optional<SaveResult> Saver::poll() {
    if (!is_saving()) return std::nullopt;
    const auto start = Clock::now();
    std::optional<SaveResult> result;
    if (save_->phase == Save::Phase::Beginning) {
        result = look_at_folder();
    } else if (save_->phase == Save::Phase::Writing) {
        look_at_shards();
    } else {
        result = look_at_commit();
    }
    save_->pause_seconds += seconds_since(start);
    if (!result) return std::nullopt;
    result->pause_seconds = save_->pause_seconds;
    save_.reset();
    return result;
}

/// All ranks begin to write when rank 0 has made the folder.
std::optional<SaveResult> Saver::look_at_folder() {
    Transport& transport = engine_.transport();
    ByteWriter writer;
    if (transport.rank() == 0) {
        const bool is_done = is_ready(save_->beginning);
        writer.put(is_done);
        if (is_done) {
            const Begun begun = save_->beginning.get();
            writer.put_text(begun.save_id);
            writer.put_text(begun.problem);
        }
    }
    const Bytes bytes = broadcast(transport, writer.take());
    ByteReader reader(bytes);
    if (!reader.get<bool>()) return std::nullopt;
    save_->save_id = reader.get_text();
    const std::string problem = reader.get_text();
    if (!problem.empty()) return SaveResult{save_->step, {}, problem, {}, 0, seconds_since(save_->start), 0};
    save_->phase = Save::Phase::Writing;
    save_->writing = launch<Written>([store = store_, state = state_, step = save_->step, save_id = save_->save_id,
                                      rank = transport.rank()] {
        Written written;
        attempt(written.problem, [&] { written.shard = store->write_shard(step, save_id, rank, state->tensors()); });
        return written;
    });
    return std::nullopt;
}

/// Rank 0 begins to commit when all ranks have written.
void Saver::look_at_shards() {
    if (!save_->written && is_ready(save_->writing)) save_->written = save_->writing.get();
    ByteWriter own;
    own.put(save_->written.has_value());
    if (save_->written) {
        own.put_text(save_->written->problem);
        own.put_text(save_->written->shard.file);
        own.put(save_->written->shard.size_bytes);
        own.put(save_->written->shard.digest);
    }
    std::vector<ShardRecord> shards;
    bool are_all_written = true;
    std::string problem;
    for (const Bytes& bytes : all_gather(engine_.transport(), own.take())) {
        ByteReader reader(bytes);
        if (!reader.get<bool>()) {
            are_all_written = false;
            continue;
        }
        const std::string other = reader.get_text();
        if (problem.empty()) problem = other;
        ShardRecord& shard = shards.emplace_back();
        shard.file = reader.get_text();
        shard.size_bytes = reader.get<uint64_t>();
        shard.digest = reader.get<Digest>();
    }
    if (!are_all_written) return;
    save_->phase = Save::Phase::Committing;
    for (const ShardRecord& shard : shards) save_->size_bytes += static_cast<int64_t>(shard.size_bytes);
    if (engine_.transport().rank() == 0) commit(std::move(shards), std::move(problem));
}

/// Rank 0's thread: publishes what all ranks have written, or takes it away.
void Saver::commit(std::vector<ShardRecord> shards, std::string problem) {
    CheckpointState state;
    state.step = save_->step;
    state.samples = save_->step * *plan_.train.global_batch_size;
    state.seed = plan_.train.seed;
    state.plan = plan_.resolved_text;
    state.facts = facts_of(plan_, program_);
    state.facts.merge(save_->notes);
    save_->committing =
        launch<Committed>([store = store_, keep = plan_.checkpoint, start = save_->start, save_id = save_->save_id,
                           state = std::move(state), shards = std::move(shards), problem = std::move(problem)] {
            Committed done;
            done.problem = problem;
            attempt(done.problem, [&] { done.folder = store->commit(save_id, state, shards); });
            if (!done.problem.empty()) store->abandon(state.step, save_id);
            done.seconds = seconds_since(start);
            attempt(done.note, [&] { store->prune(keep.keep, keep.keep_every, keep.keep_best); });
            return done;
        });
}

std::optional<SaveResult> Saver::look_at_commit() {
    ByteWriter writer;
    if (engine_.transport().rank() == 0) {
        writer.put(is_ready(save_->committing));
        if (is_ready(save_->committing)) {
            const Committed done = save_->committing.get();
            for (const std::string& text : {done.folder.string(), done.problem, done.note}) writer.put_text(text);
            writer.put(done.seconds);
        }
    }
    const Bytes bytes = broadcast(engine_.transport(), writer.take());
    ByteReader reader(bytes);
    if (!reader.get<bool>()) return std::nullopt;
    SaveResult result;
    result.step = save_->step;
    result.folder = reader.get_text();
    result.problem = reader.get_text();
    result.note = reader.get_text();
    result.seconds = reader.get<double>();
    result.size_bytes = save_->size_bytes;
    return result;
}

SaveResult Saver::finish() {
    check(is_saving(), "there is a save to wait for");
    engine_.transport().set_position("saving step " + std::to_string(save_->step));
    const auto start = Clock::now();
    const double before = save_->pause_seconds;
    for (auto pause = kFirstLook;; pause = std::min(2 * pause, kLongestLook)) {
        std::optional<SaveResult> result = poll();
        if (result) {
            result->pause_seconds = before + seconds_since(start);
            return *result;
        }
        check_disk_lives();
        std::this_thread::sleep_for(pause);
    }
}

/// A disk that blocks gives no error: the thread of this rank then reaches no stop point any more.
void Saver::check_disk_lives() {
    const uint64_t sign = signs_of_life_->load();
    const bool was_stopped = seconds_since(std::exchange(save_->last_look, Clock::now())) > kLongestGapSeconds;
    if (!save_->is_at_work() || was_stopped || sign != save_->last_sign) {
        save_->last_sign = sign;
        save_->last_life = Clock::now();
    }
    const double silent_seconds = seconds_since(save_->last_life);
    if (silent_seconds <= plan_.run.deadline_floor_s) return;
    throw Error(ErrorKind::RankLost, "the disk of " + plan_.run.dir + " does not answer: this rank has waited " +
                                         fixed_text(silent_seconds, 1) +
                                         " s for it to take a part of the save of step " + std::to_string(save_->step) +
                                         "; the checkpoints before it are as they were. Mend the disk, then start the "
                                         "same command again");
}

SaveResult save_checkpoint(Engine& engine, const Plan& plan, const Program& program, int64_t step) {
    Saver saver(engine, plan, program);
    saver.start(step);
    return saver.finish();
}

}  // namespace vpp
