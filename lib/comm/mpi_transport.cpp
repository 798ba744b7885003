#include "comm/mpi_transport.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "base/elapsed.hpp"
#include "base/error.hpp"
#include "base/units.hpp"
#include "comm/inquiry.hpp"
#include "comm/mpi_wire.hpp"

namespace vpp {

namespace {

using Seconds = std::chrono::duration<double>;
using detail::MpiWire;
using detail::Note;
using detail::NoteKind;

/// How long before the deadline the others are asked, and the least time they get for an answer.
constexpr double kAskSeconds = 1.0;
/// Answers are renewed this often: what they say is seldom older.
constexpr double kAskAgainSeconds = 0.25;
/// How long a rank leaves the report to a lower one that asks as well, or to one that has reported.
constexpr double kYieldSeconds = 0.3;
constexpr double kReportedSeconds = 5.0;
/// An engine that is still there this long after the error is ended by the watchdog.
constexpr double kEndSeconds = 1.0;
/// A waiting thread that sees its clock jump further did not run: the process was stopped.
constexpr double kJumpSeconds = 0.5;
/// How long started sends get at the end; and after the loss of a rank, when only the word of it has to go.
constexpr double kDrainSeconds = 2.0, kLostDrainSeconds = 0.05;

// How often the thread looks while ops run: seldom while nothing comes (1 ms took 1.3 % of a core, 2 ms 0.7 %),
// often while contents are on their way, and just often enough to answer pings where callers move all messages.
constexpr Seconds kThreadPeriod(2e-3);
constexpr Seconds kBusyThreadPeriod(2e-4);
constexpr Seconds kAnswerPeriod(0.05);

double seconds_between(Clock::time_point from, Clock::time_point to) {
    return Seconds(to - from).count();
}

/// Pauses of a waiting thread. Where it has a core for itself it stays awake for longer than the bubbles of a step
/// last: a sleep of 50 us takes twice that, and a message that comes meanwhile waits. Where ranks share cores it lets
/// the others run at once. Then both sleep in growing steps; not while contents are on their way, as MPI moves a large
/// message piece by piece, a piece or few each time that it is looked at.
class Backoff {
  public:
    explicit Backoff(bool crowded) : crowded_(crowded) {}
    void reset() { num_pauses_ = num_sleeps_ = 0; }
    void pause(bool is_moving = false) {
        constexpr int kSpins = 200, kYields = 200;
        const int number = num_pauses_++;
        if (number == 0) start_ = Clock::now();
        if (!crowded_ && number < kSpins) return;
        if (crowded_ ? number < kYields : is_moving || seconds_between(start_, Clock::now()) < kAwakeSeconds) {
            sched_yield();
            return;
        }
        constexpr int kMaxSleepMicroseconds = 400;
        const int steps = std::min(num_sleeps_++ / 16, 3);
        std::this_thread::sleep_for(std::chrono::microseconds(std::min(50 << steps, kMaxSleepMicroseconds)));
    }

  private:
    static constexpr double kAwakeSeconds = 0.02;
    bool crowded_;
    Clock::time_point start_;
    int num_pauses_ = 0, num_sleeps_ = 0;
};

}  // namespace

class MpiTransport::Impl {
  public:
    Impl(MpiSession& session, const MpiTransportOptions& options);
    ~Impl();

    int rank() const { return session_.rank(); }
    int size() const { return session_.size(); }
    void send(int peer, const Channel& channel, Buffer message);
    void post_receive(int peer, const Channel& channel, size_t capacity_bytes);
    Buffer receive(int peer, const Channel& channel);
    bool has_arrived(int peer, const Channel& channel);
    void finish_sends();
    double take_wait_seconds() { return std::exchange(wait_seconds_, 0); }
    void set_deadline(double seconds) { deadline_seconds_ = seconds; }
    double deadline_seconds() const { return deadline_seconds_; }
    void set_position(const std::string& text);
    std::string position() const;
    void wait(const Wait& what, const std::function<bool()>& done);
    Watchdog::Phase begin_device_wait(const Wait& what);
    Watchdog::Phase begin_end(const std::string& text, double seconds, int code) const;
    void carry(std::unique_ptr<DeviceMemory> device);
    bool carries_device_memory() const { return device_ != nullptr; }
    void time_parts(bool on);
    std::vector<PartSpan> take_part_spans();

  private:
    using Lock = std::unique_lock<std::timed_mutex>;

    /// One wait: its clock and how far the inquiry about it is.
    struct Waiting {
        Clock::time_point start = Clock::now();
        Clock::time_point last = start;
        std::optional<double> asked_seconds;  ///< when the others were asked first, after the start of the wait
        double asked_again_seconds = 0;
        double seconds() const { return seconds_between(start, last); }
        void tick();
    };

    /// While it lives, this rank's status says that it waits.
    class ShownWait {
      public:
        ShownWait(Impl& impl, const Wait& what) : impl_(impl) {
            const std::lock_guard lock(impl.status_mutex_);
            impl.wait_ = what;
            impl.wait_start_ = Clock::now();
        }
        ~ShownWait() {
            const std::lock_guard lock(impl_.status_mutex_);
            impl_.wait_.reset();
        }
        ShownWait(const ShownWait&) = delete;
        ShownWait& operator=(const ShownWait&) = delete;

      private:
        Impl& impl_;
    };

    Lock lock_mpi();
    bool progress();
    void pause(Lock& lock, Backoff& backoff, bool moved);
    void thread_main(const std::stop_token& stop);
    void open();
    void drain();

    RankStatus status();
    void handle_notes();
    void ask();
    void report_if_due(Waiting& waiting, int peer);
    bool all_answered() const;
    bool others_report(double late_seconds) const;
    [[noreturn]] void report(int peer);

    MpiSession& session_;
    const MpiTransportOptions options_;
    const bool crowded_;
    double deadline_seconds_;
    double wait_seconds_ = 0;
    Watchdog::Phase end_phase_;
    bool is_lost_ = false;  ///< a rank is lost: nothing that was sent may arrive
    bool is_timed_ = false;
    std::vector<PartSpan> timed_;  ///< what the device was given to move while times are kept; without times

    // Guarded by the session's mutex.
    std::unique_ptr<DeviceMemory> device_;  ///< its send, deliver and times are the caller's
    MpiWire wire_;
    int inquiry_ = 0;
    std::vector<std::optional<RankStatus>> answers_;
    std::vector<std::optional<Clock::time_point>> asked_by_;
    std::optional<Clock::time_point> reported_;
    std::string reported_text_;
    std::exception_ptr failure_;

    mutable std::mutex status_mutex_;
    std::string position_ = "start";
    Clock::time_point position_start_ = Clock::now();
    std::optional<Wait> wait_;
    Clock::time_point wait_start_;

    std::mutex thread_mutex_;
    std::condition_variable_any thread_wake_;
    std::jthread thread_;  // last: it uses all of the above
};

MpiTransport::Impl::Impl(MpiSession& session, const MpiTransportOptions& options)
    : session_(session),
      options_(options),
      crowded_(session.local_size() > session.local_cores()),
      deadline_seconds_(options.deadline_seconds),
      wire_(session, {.piece_bytes = options.piece_bytes, .accept_unposted = !options.overlap}),
      answers_(static_cast<size_t>(session.size())),
      asked_by_(static_cast<size_t>(session.size())) {
    open();
    thread_ = std::jthread([this](const std::stop_token& stop) { thread_main(stop); });
}

void MpiTransport::Impl::open() {
    Waiting waiting;
    Backoff backoff(crowded_);
    for (;;) {
        {
            const Lock lock(session_.mutex());
            if (wire_.start()) return;
        }
        waiting.tick();
        if (waiting.seconds() > deadline_seconds_) {
            throw Error(ErrorKind::RankLost,
                        "rank " + std::to_string(rank()) + " has waited " + fixed_text(waiting.seconds(), 1) +
                            " s for all ranks to open their transport; try to start the job again");
        }
        backoff.pause();
    }
}

MpiTransport::Impl::~Impl() {
    thread_.request_stop();
    thread_.join();
    try {
        drain();
    } catch (const std::exception&) {
        session_.keep_open();
    }
}

void MpiTransport::Impl::drain() {
    const auto start = Clock::now();
    Backoff backoff(crowded_);
    const double limit_seconds = is_lost_ ? kLostDrainSeconds : kDrainSeconds;
    while (seconds_between(start, Clock::now()) < limit_seconds) {
        const Lock lock(session_.mutex());
        wire_.progress();
        if (!wire_.oldest_send() && wire_.notes_sent()) return;
        backoff.pause();
    }
    session_.keep_open();
}

/// A gap in which this process did not run is no time that a peer has let it wait.
void MpiTransport::Impl::Waiting::tick() {
    const auto now = Clock::now();
    if (seconds_between(last, now) > kJumpSeconds) start += now - last;
    last = now;
}

MpiTransport::Impl::Lock MpiTransport::Impl::lock_mpi() {
    Lock lock(session_.mutex());
    if (failure_) std::rethrow_exception(failure_);
    return lock;
}

bool MpiTransport::Impl::progress() {
    const bool moved = wire_.progress();
    handle_notes();
    return moved;
}

void MpiTransport::Impl::thread_main(const std::stop_token& stop) {
    bool has_entered_device = false;
    std::unique_lock sleep(thread_mutex_);
    while (!stop.stop_requested()) {
        Seconds period = kAnswerPeriod;
        // A caller that holds the lock moves messages itself.
        if (Lock lock(session_.mutex(), std::try_to_lock); lock) {
            try {
                if (device_ && !std::exchange(has_entered_device, true)) device_->enter();
                progress();
            } catch (...) {
                failure_ = std::current_exception();
                return;
            }
            if (size() > 1) period = wire_.busy() ? kBusyThreadPeriod : kThreadPeriod;
        }
        thread_wake_.wait_for(sleep, stop, period, [] { return false; });
    }
}

void MpiTransport::Impl::send(int peer, const Channel& channel, Buffer message) {
    check(peer >= 0 && peer < size(), "a message's peer is a rank of the job");
    {
        const Lock lock = lock_mpi();
        check(!message.part().is_on_device || device_, "this rank's MPI carries no memory of devices");
        if (is_timed_ && message.part().is_on_device && message.part().num_bytes > 0)
            timed_.push_back({peer, channel, true, 0, 0});
        wire_.send(peer, channel, std::move(message));
        progress();
    }
    if (!options_.overlap) finish_sends();
}

void MpiTransport::Impl::post_receive(int peer, const Channel& channel, size_t capacity_bytes) {
    check(peer >= 0 && peer < size(), "a message's peer is a rank of the job");
    const Lock lock = lock_mpi();
    wire_.post(peer, channel, capacity_bytes);
}

Buffer MpiTransport::Impl::receive(int peer, const Channel& channel) {
    std::optional<Buffer> message;
    Wait what{Wait::Kind::Receive, peer, channel, 0, 0};
    {
        const Lock lock = lock_mpi();
        what.num_bytes = wire_.capacity_bytes(peer, channel);
    }
    std::unique_ptr<DeviceMemory::Delivery> delivery;
    const auto deliver = [&] {
        const auto [part, num_bytes] = wire_.arrived_part(peer, channel);
        if (num_bytes == 0) return;
        if (!delivery) delivery = device_->deliver(part);
        delivery->advance(num_bytes);
    };
    wait(what, [&] {
        deliver();
        return (message = wire_.take(peer, channel)).has_value();
    });
    if (delivery) {
        if (is_timed_) timed_.push_back({peer, channel, false, 0, 0});
        message->set_part(delivery->finish());
    }
    return std::move(*message);
}

bool MpiTransport::Impl::has_arrived(int peer, const Channel& channel) {
    const Lock lock = lock_mpi();
    progress();
    return wire_.has_arrived(peer, channel);
}

void MpiTransport::Impl::finish_sends() {
    std::optional<Wait> oldest;
    {
        const Lock lock = lock_mpi();
        progress();
        oldest = wire_.oldest_send();
    }
    if (oldest) wait(*oldest, [&] { return !wire_.oldest_send(); });
}

/// Behind the reports of ranks that wait here themselves: they know more.
Watchdog::Phase MpiTransport::Impl::begin_device_wait(const Wait& what) {
    if (options_.watchdog == nullptr) return {};
    const double seconds = deadline_seconds_ + kAskSeconds + kYieldSeconds + kReportedSeconds;
    RankStatus status = this->status();
    status.wait = what;
    status.wait->seconds = seconds;
    return options_.watchdog->begin(to_text(rank(), status) + "; its device waits, and it waits for its device",
                                    seconds);
}

Watchdog::Phase MpiTransport::Impl::begin_end(const std::string& text, double seconds, int code) const {
    return options_.watchdog == nullptr ? Watchdog::Phase() : options_.watchdog->begin(text, seconds, code);
}

void MpiTransport::Impl::carry(std::unique_ptr<DeviceMemory> device) {
    const Lock lock = lock_mpi();
    device->enter();
    device_ = std::move(device);
    wire_.use(*device_);
}

void MpiTransport::Impl::time_parts(bool on) {
    is_timed_ = on && device_;
    if (device_) device_->set_timed(on);
}

std::vector<PartSpan> MpiTransport::Impl::take_part_spans() {
    std::vector<PartSpan> spans = std::exchange(timed_, {});
    const auto times = device_ ? device_->take_times() : std::vector<std::pair<int64_t, int64_t>>();
    if (times.empty()) return {};  // MPI itself has moved them
    set_times(spans, times);
    return spans;
}

void MpiTransport::Impl::set_position(const std::string& text) {
    const std::lock_guard lock(status_mutex_);
    position_ = text;
    position_start_ = Clock::now();
}

std::string MpiTransport::Impl::position() const {
    const std::lock_guard lock(status_mutex_);
    return position_;
}

void MpiTransport::Impl::wait(const Wait& what, const std::function<bool()>& done) {
    {
        const Lock lock = lock_mpi();
        progress();
        if (done()) return;
    }
    const ShownWait shown(*this, what);
    Watchdog::Phase phase;
    if (options_.watchdog != nullptr) {
        phase = options_.watchdog->begin(to_text(rank(), status()) + "; it is stuck inside MPI and cannot say more",
                                         deadline_seconds_ + kAskSeconds + kYieldSeconds + kReportedSeconds);
    }
    Waiting waiting;
    Backoff backoff(crowded_);
    for (;;) {
        Lock lock = lock_mpi();
        const bool moved = progress();
        if (done()) break;
        waiting.tick();
        report_if_due(waiting, what.peer);
        pause(lock, backoff, moved);
    }
    waiting.tick();
    wait_seconds_ += waiting.seconds();
}

void MpiTransport::Impl::pause(Lock& lock, Backoff& backoff, bool moved) {
    const bool is_moving = wire_.busy();
    lock.unlock();
    if (moved) backoff.reset();
    backoff.pause(is_moving);
}

RankStatus MpiTransport::Impl::status() {
    const std::lock_guard lock(status_mutex_);
    const auto now = Clock::now();
    RankStatus status{position_, seconds_between(position_start_, now), wait_};
    if (status.wait) status.wait->seconds = seconds_between(wait_start_, now);
    return status;
}

void MpiTransport::Impl::handle_notes() {
    for (const Note& note : wire_.take_notes()) {
        const auto peer = static_cast<size_t>(note.peer);
        switch (note.kind) {
            case NoteKind::Ping:
                asked_by_[peer] = Clock::now();
                wire_.send_note({NoteKind::Answer, note.peer, note.number, encode(status())});
                break;
            case NoteKind::Answer:
                if (note.number == inquiry_) answers_[peer] = decode_rank_status(note.bytes);
                break;
            case NoteKind::Verdict:
                reported_ = Clock::now();
                reported_text_ = to_string(note.bytes);
                break;
        }
    }
}

void MpiTransport::Impl::ask() {
    for (int peer = 0; peer < size(); ++peer) {
        if (peer != rank()) wire_.send_note({NoteKind::Ping, peer, inquiry_, {}});
    }
}

bool MpiTransport::Impl::all_answered() const {
    return std::count(answers_.begin(), answers_.end(), std::nullopt) <= 1;  // its own is filled in by report()
}

/// So that a job ends with one sentence: who has reported is left alone, and of those that ask the lowest reports.
bool MpiTransport::Impl::others_report(double late_seconds) const {
    const auto now = Clock::now();
    if (reported_ && seconds_between(*reported_, now) < kReportedSeconds) return true;
    if (late_seconds >= kYieldSeconds) return false;
    return std::any_of(asked_by_.begin(), asked_by_.begin() + rank(),
                       [&](const auto& asked) { return asked && seconds_between(*asked, now) < kAskSeconds; });
}

void MpiTransport::Impl::report_if_due(Waiting& waiting, int peer) {
    const double seconds = waiting.seconds();
    if (!waiting.asked_seconds) {
        if (seconds < deadline_seconds_ - kAskSeconds) return;
        waiting.asked_seconds = waiting.asked_again_seconds = seconds;
        std::fill(answers_.begin(), answers_.end(), std::nullopt);
        ++inquiry_;
        ask();
    } else if (seconds > waiting.asked_again_seconds + kAskAgainSeconds) {
        waiting.asked_again_seconds = seconds;
        ask();
    }
    if (seconds < deadline_seconds_) return;
    const double due_seconds = all_answered() ? deadline_seconds_ : *waiting.asked_seconds + kAskSeconds;
    if (seconds < due_seconds || others_report(seconds - due_seconds)) return;
    report(peer);
}

void MpiTransport::Impl::report(int peer) {
    const bool told = reported_ && seconds_between(*reported_, Clock::now()) < 2 * kReportedSeconds;
    std::string text = reported_text_;
    if (!told) {
        Inquiry inquiry{rank(), answers_, wire_.heard_seconds(), wire_.unposted(peer)};
        inquiry.answers[static_cast<size_t>(rank())] = status();
        text = lost_text(inquiry);
        for (int other = 0; other < size(); ++other) {
            if (other != rank()) wire_.send_note({NoteKind::Verdict, other, inquiry_, to_bytes(text)});
        }
        wire_.progress();
    }
    reported_.reset();
    is_lost_ = true;
    end_phase_ = begin_end(text, kEndSeconds, exit_code(ErrorKind::RankLost));
    throw Error(ErrorKind::RankLost, text);
}

MpiTransport::MpiTransport(MpiSession& session, const MpiTransportOptions& options)
    : impl_(std::make_unique<Impl>(session, options)) {}
MpiTransport::~MpiTransport() = default;
void MpiTransport::carry(std::unique_ptr<DeviceMemory> device) {
    impl_->carry(std::move(device));
}
bool MpiTransport::carries_device_memory() const {
    return impl_->carries_device_memory();
}
void MpiTransport::time_parts(bool on) {
    impl_->time_parts(on);
}
std::vector<PartSpan> MpiTransport::take_part_spans() {
    return impl_->take_part_spans();
}
int MpiTransport::rank() const {
    return impl_->rank();
}
int MpiTransport::size() const {
    return impl_->size();
}
void MpiTransport::send(int peer, const Channel& channel, Buffer message) {
    impl_->send(peer, channel, std::move(message));
}
void MpiTransport::post_receive(int peer, const Channel& channel, size_t capacity_bytes) {
    impl_->post_receive(peer, channel, capacity_bytes);
}
Buffer MpiTransport::receive(int peer, const Channel& channel) {
    return impl_->receive(peer, channel);
}
bool MpiTransport::has_arrived(int peer, const Channel& channel) {
    return impl_->has_arrived(peer, channel);
}
void MpiTransport::finish_sends() {
    impl_->finish_sends();
}
void MpiTransport::wait_until(const Wait& what, const std::function<bool()>& done) {
    impl_->wait(what, done);
}
Watchdog::Phase MpiTransport::begin_device_wait(const Wait& what) {
    return impl_->begin_device_wait(what);
}
Watchdog::Phase MpiTransport::begin_end(const std::string& text, double seconds, int code) {
    return impl_->begin_end(text, seconds, code);
}
double MpiTransport::take_wait_seconds() {
    return impl_->take_wait_seconds();
}
void MpiTransport::set_deadline(double seconds) {
    impl_->set_deadline(seconds);
}
double MpiTransport::deadline_seconds() const {
    return impl_->deadline_seconds();
}
void MpiTransport::set_position(const std::string& text) {
    impl_->set_position(text);
}
std::string MpiTransport::position() const {
    return impl_->position();
}

}  // namespace vpp
