#include "engine/saver.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <random>
#include <thread>

#include "base/elapsed.hpp"
#include "base/error.hpp"
#include "base/units.hpp"
#include "checkpoint/going_on.hpp"
#include "checkpoint/manifest.hpp"
#include "comm/collective.hpp"
#include "engine/run_facts.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::milliseconds kFirstLook{1}, kLongestLook{20};

// Looks that are further apart mean that this process itself did not run.
constexpr double kLongestGapSeconds = 1;

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
std::string problem_ahead(const fs::path& disk, uint64_t needed_bytes) {
    std::error_code error;
    const fs::space_info space = fs::space(disk, error);
    if (error || space.available >= needed_bytes) return "";
    return "it takes " + bytes_text(static_cast<int64_t>(needed_bytes)) + ", and " + disk.string() + " has " +
           bytes_text(static_cast<int64_t>(space.available)) + " free";
}

}  // namespace

/// What the thread of a keeper has done first.
struct Saver::Begun {
    std::string problem;
};

/// What the thread of a rank has done.
struct Saver::Written {
    ShardRecord shard;
    std::string problem;
};

/// What the thread of a keeper has done last; of all keepers: rank 0's folder, the first problem and note by rank, and
/// the longest time.
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
    /// The same on every rank. Ending: of a save with several keepers, when all of them have committed or failed.
    enum class Phase { Beginning, Writing, Committing, Ending } phase = Phase::Beginning;
    std::string save_id;
    int64_t size_bytes = 0;
    std::future<Begun> beginning;  ///< a keeper's
    std::optional<Begun> begun;
    std::future<Written> writing;
    std::optional<Written> written;     ///< by this rank
    std::future<Committed> committing;  ///< a keeper's, and so is the end of it
    std::optional<Committed> committed;
    std::optional<Committed> outcome;  ///< of all keepers' commits, in Ending
    uint64_t last_sign = 0;
    Clock::time_point last_life = start, last_look = start;

    bool is_at_work() const { return is_running(beginning) || is_running(writing) || is_running(committing); }
};

Saver::Saver(Engine& engine, const Plan& plan, const Program& program, StopHook stop, RunFolders folders)
    : engine_(engine),
      plan_(plan),
      program_(program),
      folders_(std::move(folders)),
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
    own.put_text(rank() == 0 ? new_save_id() : "");
    uint64_t folder_bytes = 0;  // of all ranks that see this rank's folder
    const std::vector<Bytes> all = all_gather(engine_.transport(), own.take());
    for (size_t other = 0; other < all.size(); ++other) {
        ByteReader reader(all[other]);
        const auto bytes = reader.get<uint64_t>();
        if (other == 0) save_->save_id = reader.get_text();
        if (folders_.keeper_of(static_cast<int>(other)) == folders_.keeper_of(rank())) folder_bytes += bytes;
    }
    if (is_keeper()) begin(folder_bytes);
    save_->pause_seconds = seconds_since(save_->start);
}

/// A keeper's thread: makes the folder.
void Saver::begin(uint64_t needed_bytes) {
    save_->beginning = launch<Begun>([store = store_, step = save_->step, save_id = save_->save_id, needed_bytes] {
        Begun begun;
        attempt(begun.problem, [&] {
            store->remove_left_overs();  // they take room
            begun.problem = problem_ahead(store->disk(), needed_bytes);
        });
        attempt(begun.problem, [&] { store->begin(step, save_id); });
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

/// All ranks begin to write when every keeper has made the folder.
std::optional<SaveResult> Saver::look_at_folder() {
    if (!save_->begun && is_ready(save_->beginning)) save_->begun = save_->beginning.get();
    ByteWriter own;
    own.put(!is_keeper() || save_->begun);
    own.put_text(save_->begun ? save_->begun->problem : "");
    std::string problem;
    bool are_all_made = true;
    for (const Bytes& bytes : all_gather(engine_.transport(), own.take())) {
        ByteReader reader(bytes);
        are_all_made = reader.get<bool>() && are_all_made;
        const std::string other = reader.get_text();
        if (problem.empty()) problem = other;
    }
    if (!are_all_made) return std::nullopt;
    if (!problem.empty()) return SaveResult{save_->step, {}, problem, {}, 0, seconds_since(save_->start), 0};
    save_->phase = Save::Phase::Writing;
    write();
    return std::nullopt;
}

/// The thread of every rank: its shard.
void Saver::write() {
    save_->writing = launch<Written>([store = store_, state = state_, step = save_->step, save_id = save_->save_id,
                                      rank = rank()] {
        Written written;
        attempt(written.problem, [&] { written.shard = store->write_shard(step, save_id, rank, state->tensors()); });
        return written;
    });
}

/// The keepers begin to commit when all ranks have written.
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
    commit(std::move(shards), std::move(problem));
}

Manifest Saver::make_manifest(std::vector<ShardRecord> shards) const {
    Manifest manifest;
    manifest.save_id = save_->save_id;
    manifest.state.step = save_->step;
    manifest.state.samples = save_->step * *plan_.train.global_batch_size;
    manifest.state.seed = plan_.train.seed;
    manifest.state.plan = plan_.resolved_text;
    manifest.state.facts = training_facts(plan_, program_, engine_);
    manifest.state.facts.insert(save_->notes.begin(), save_->notes.end());
    manifest.shards = std::move(shards);
    return manifest;
}

/// A keeper's thread: publishes what all ranks have written, or takes it away. The only keeper ends it at once.
void Saver::commit(std::vector<ShardRecord> shards, std::string problem) {
    const bool is_alone = folders_.is_one();
    if (is_alone && !is_keeper()) return;
    Manifest manifest = make_manifest(std::move(shards));
    if (!is_alone && problem.empty()) {  // the same bytes in every folder: those of rank 0
        const Bytes bytes = broadcast(engine_.transport(), to_bytes(manifest_to_text(manifest)));
        manifest = manifest_from_text(to_string(bytes), "the manifest of rank 0");
    }
    if (!is_keeper()) return;
    std::vector<ShardRecord> here;
    for (size_t other = 0; other < manifest.shards.size(); ++other) {
        if (folders_.keeper_of(static_cast<int>(other)) == rank()) here.push_back(manifest.shards[other]);
    }
    save_->committing =
        launch<Committed>([store = store_, keep = plan_.checkpoint, start = save_->start, is_alone = folders_.is_one(),
                           manifest = std::move(manifest), here = std::move(here), problem = std::move(problem)] {
            const int64_t step = manifest.state.step;
            Committed done;
            done.problem = problem;
            attempt(done.problem, [&] { done.folder = store->publish(manifest, here); });
            if (is_alone) attempt(done.problem, [&] { store->confirm(step); });
            if (!done.problem.empty() && is_alone) store->abandon(step, manifest.save_id);
            done.seconds = seconds_since(start);
            if (is_alone) attempt(done.note, [&] { store->prune(keep.keep, keep.keep_every, keep.keep_best); });
            return done;
        });
}

/// A keeper's thread, when all keepers have committed or one has failed.
void Saver::end_commit() {
    if (!is_keeper()) return;
    save_->committing = launch<Committed>([store = store_, keep = plan_.checkpoint, step = save_->step,
                                           save_id = save_->save_id, is_good = save_->outcome->problem.empty()] {
        Committed done;
        attempt(done.note, [&] {
            if (!is_good) return store->withdraw(step, save_id);
            store->confirm(step);
            store->prune(keep.keep, keep.keep_every, keep.keep_best);
        });
        return done;
    });
}

/// What the keepers' threads have done, when all are through.
std::optional<Saver::Committed> Saver::all_committed() {
    if (is_ready(save_->committing)) save_->committed = save_->committing.get();
    const Committed own = save_->committed.value_or(Committed{});
    ByteWriter writer;
    writer.put(!is_keeper() || save_->committed);
    for (const std::string& text : {own.folder.string(), own.problem, own.note}) writer.put_text(text);
    writer.put(own.seconds);
    Committed all;
    bool are_all_through = true;
    for (const Bytes& bytes : all_gather(engine_.transport(), writer.take())) {
        ByteReader reader(bytes);
        are_all_through = reader.get<bool>() && are_all_through;
        const std::string folder = reader.get_text(), problem = reader.get_text(), note = reader.get_text();
        if (all.folder.empty()) all.folder = folder;
        if (all.problem.empty()) all.problem = problem;
        if (all.note.empty()) all.note = note;
        all.seconds = std::max(all.seconds, reader.get<double>());
    }
    if (!are_all_through) return std::nullopt;
    save_->committed.reset();
    return all;
}

std::optional<SaveResult> Saver::look_at_commit() {
    const std::optional<Committed> done = all_committed();
    if (!done) return std::nullopt;
    if (save_->phase == Save::Phase::Committing) {
        save_->outcome = done;
        if (!folders_.is_one()) {
            save_->phase = Save::Phase::Ending;
            end_commit();
            return std::nullopt;
        }
    }
    const Committed& outcome = *save_->outcome;
    SaveResult result;
    result.step = save_->step;
    if (outcome.problem.empty()) result.folder = outcome.folder;
    result.problem = outcome.problem;
    result.note = done->note;
    result.seconds = outcome.seconds;
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
                                         "; the checkpoints before it are as they were. Mend the disk, then " +
                                         how_to_go_on(plan_.checkpoint.resume));
}

SaveResult save_checkpoint(Engine& engine, const Plan& plan, const Program& program, int64_t step,
                           const RunFolders& folders) {
    Saver saver(engine, plan, program, {}, folders);
    saver.start(step);
    return saver.finish();
}

}  // namespace vpp
