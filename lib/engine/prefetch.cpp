#include "engine/prefetch.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "base/clock_alignment.hpp"
#include "base/error.hpp"
#include "base/signals_blocked.hpp"
#include "base/units.hpp"

namespace vpp {

namespace {

// Looks are counted in place of the clock: time in which this process did not run is none that a disk took.
constexpr std::chrono::milliseconds kLook{20};
constexpr std::chrono::milliseconds kLongestEnd{200};

struct Input {
    std::vector<std::byte> bytes;
    std::exception_ptr problem;
};

}  // namespace

/// A place counts the needs of all steps from the first one of step 0 on. All but the constants need the lock.
struct Prefetch::Shared {
    Shared(std::vector<InputNeed> of_step, int64_t steps, Read reader, size_t most_ahead, PrefetchWords called)
        : needs(std::move(of_step)),
          num_steps(steps),
          read(std::move(reader)),
          ahead(most_ahead),
          words(std::move(called)) {}

    const std::vector<InputNeed> needs;
    const int64_t num_steps;
    const Read read;
    const size_t ahead;
    const PrefetchWords words;

    std::mutex mutex;
    std::condition_variable changed;
    std::thread thread;
    std::deque<Input> ready;  ///< from `next` on, without a gap; the thread reads the one behind them
    int64_t next = 0;         ///< the place that is taken next
    int64_t end = 0;          ///< no place from here on is read
    uint64_t beginnings = 0;  ///< what was begun to be read before the last one is dropped
    bool is_reading = false;  ///< false: nothing was asked for yet, or a read failed
    bool is_stopped = false, has_ended = false;
    std::vector<ReadSpan> spans;

    int64_t needs_per_step() const { return static_cast<int64_t>(needs.size()); }
    int64_t reading() const { return next + static_cast<int64_t>(ready.size()); }
    bool has_work() const { return is_reading && ready.size() < ahead && reading() < end; }

    InputNeed need_at(int64_t place) const {
        InputNeed need = needs[static_cast<size_t>(place % needs_per_step())];
        need.step = place / needs_per_step();
        return need;
    }

    /// `next` where it has this need, else the first one that has.
    int64_t place_of(const InputNeed& need) const {
        if (!needs.empty() && need_at(next) == need) return next;
        for (int64_t i = 0; i < needs_per_step(); ++i) {
            const int64_t place = need.step * needs_per_step() + i;
            if (need_at(place) == need) return place;
        }
        check(false, "an input that is taken is one that a step needs");
        return 0;
    }

    void begin_at(int64_t place) {
        ready.clear();
        next = place;
        ++beginnings;
        is_reading = true;
    }

    Input read_timed(const InputNeed& need, ReadSpan& span) const {
        Input input;
        span = {steady_nanoseconds(), 0, need.step, need.microbatch, need.input};
        try {
            input.bytes = read(need);
        } catch (...) {
            input.problem = std::current_exception();
        }
        span.end = steady_nanoseconds();
        return input;
    }

    void run() {
        std::unique_lock lock(mutex);
        for (;;) {
            changed.wait(lock, [&] { return is_stopped || has_work(); });
            if (is_stopped) break;
            const uint64_t beginning = beginnings;
            const InputNeed need = need_at(reading());
            lock.unlock();
            ReadSpan span;
            Input input = read_timed(need, span);
            lock.lock();
            spans.push_back(span);
            if (beginning != beginnings) continue;
            is_reading = !input.problem;
            ready.push_back(std::move(input));
            changed.notify_all();
        }
        has_ended = true;
        changed.notify_all();
    }
};

Prefetch::Prefetch(std::vector<InputNeed> needs, int64_t num_steps, Read read, size_t ahead, PrefetchWords words)
    : shared_(std::make_shared<Shared>(std::move(needs), num_steps, std::move(read), ahead, std::move(words))) {}

Prefetch::~Prefetch() {
    std::unique_lock lock(shared_->mutex);
    if (!shared_->thread.joinable()) return;
    shared_->is_stopped = true;
    shared_->changed.notify_all();
    const bool has_ended = shared_->changed.wait_for(lock, kLongestEnd, [&] { return shared_->has_ended; });
    std::thread thread = std::move(shared_->thread);
    lock.unlock();
    has_ended ? thread.join() : thread.detach();
}

std::vector<std::byte> Prefetch::take(const InputNeed& need, double deadline_seconds) {
    Shared& all = *shared_;
    std::unique_lock lock(all.mutex);
    const int64_t place = all.place_of(need);
    Input input;
    if (all.ahead == 0) {
        ReadSpan span;
        input = all.read_timed(need, span);
        all.spans.push_back(span);
    } else {
        if (place != all.next || (!all.is_reading && all.ready.empty())) all.begin_at(place);
        all.end = std::max(all.num_steps, need.step + 1) * all.needs_per_step();
        if (!all.thread.joinable()) {
            const SignalsBlocked blocked;
            all.thread = std::thread([shared = shared_] { shared->run(); });
        }
        all.changed.notify_all();
        double waited_seconds = 0;
        while (!all.changed.wait_for(lock, kLook, [&] { return !all.ready.empty(); })) {
            waited_seconds += std::chrono::duration<double>(kLook).count();
            if (waited_seconds < deadline_seconds) continue;
            throw Error(ErrorKind::RankLost, "the " + all.words.data + " do not answer: this rank has waited " +
                                                 fixed_text(waited_seconds, 1) + " s for a read of " + all.words.step +
                                                 " " + std::to_string(need.step + 1) +
                                                 ". Mend the disk, then start the command again");
        }
        input = std::move(all.ready.front());
        all.ready.pop_front();
    }
    all.next = place + 1;
    all.changed.notify_all();
    if (input.problem) std::rethrow_exception(input.problem);
    return std::move(input.bytes);
}

std::vector<ReadSpan> Prefetch::take_spans() {
    const std::lock_guard lock(shared_->mutex);
    return std::exchange(shared_->spans, {});
}

}  // namespace vpp
