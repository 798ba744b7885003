#include "comm/in_process.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

#include "base/elapsed.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "comm/inquiry.hpp"
#include "comm/lanes.hpp"

namespace vpp {

namespace {

/// A message under way. Time is counted in handovers of the baton.
struct Message {
    int sender = 0;
    int receiver = 0;
    Channel channel;
    Buffer bytes;
    int64_t due = 0;
    bool posted = false;
    bool taken = false;
};

using detail::LaneKey;
using detail::Lanes;

/// All ranks share it; every member is guarded by mutex_.
class Shared {
  public:
    explicit Shared(const InProcessOptions& options)
        : options_(options),
          num_ranks_(static_cast<size_t>(options.num_ranks)),
          ranks_(num_ranks_),
          random_state_(mix64(options.seed)),
          holder_(static_cast<int>(random(num_ranks_))) {}

    const InProcessOptions& options() const { return options_; }

    void send(int sender, int peer, const Channel& channel, const Buffer& bytes);
    void post(int rank, int peer, const Channel& channel, size_t capacity_bytes);
    Buffer receive(int rank, int peer, const Channel& channel);
    bool has_arrived(int rank, int peer, const Channel& channel);
    void finish_sends(int rank, bool until_posted);
    void wait_until(int rank, const Wait& what, const std::function<bool()>& done);
    double take_wait_seconds(int rank);
    void set_deadline(int rank, double seconds);
    double deadline_seconds(int rank);
    void set_position(int rank, const std::string& text);

    /// A rank thread starts here and goes on once it holds the baton.
    void enter(int rank);
    void leave(int rank);
    void fail(int rank, std::exception_ptr error);
    std::exception_ptr first_error() const { return first_error_; }

  private:
    struct Rank {
        std::condition_variable wake;
        Lanes<Message> lanes;
        std::list<std::shared_ptr<Message>> sent;
        std::function<bool()> can_go_on;  ///< empty: it computes, or only waits for the baton
        Wait wait;                        ///< what can_go_on is about
        Clock::time_point wait_start;
        Clock::time_point position_start = Clock::now();
        std::string position = "start";
        double deadline_seconds = 300;
        double wait_seconds = 0;
        bool finished = false;
    };
    static constexpr int kNobody = -1;

    uint64_t random(uint64_t bound) { return (random_state_ = mix64(random_state_)) % bound; }
    Rank& at(int rank) { return ranks_[static_cast<size_t>(rank)]; }
    bool is_due(const Message& message) const { return message.due <= num_handovers_; }
    void wait(std::unique_lock<std::mutex>& lock, int rank, const Wait& wait, std::function<bool()> can_go_on);
    void wait_for_baton(std::unique_lock<std::mutex>& lock, int rank);
    void hand_over();
    bool skip_to_next_due();
    RankStatus status_of(const Rank& rank) const;
    void report_deadlock();
    [[noreturn]] void throw_failed(int rank) const;
    [[noreturn]] void throw_overdue(int rank);

    const InProcessOptions options_;
    const size_t num_ranks_;
    std::mutex mutex_;
    std::vector<Rank> ranks_;
    std::list<std::weak_ptr<Message>> late_;
    uint64_t random_state_;
    int holder_;
    int64_t num_handovers_ = 0;
    Clock::time_point handover_time_ = Clock::now();
    std::exception_ptr first_error_;
    std::string failure_;  ///< what the other ranks are told
};

void Shared::enter(int rank) {
    std::unique_lock lock(mutex_);
    wait_for_baton(lock, rank);
}

void Shared::leave(int rank) {
    const std::lock_guard lock(mutex_);
    at(rank).finished = true;
    if (holder_ == rank) hand_over();
}

void Shared::fail(int rank, std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    at(rank).finished = true;
    if (!first_error_) first_error_ = std::move(error);
    if (failure_.empty()) failure_ = "rank " + std::to_string(rank) + " (" + at(rank).position + ") failed";
    // Everyone may run now: each rank only has to find out and end.
    holder_ = kNobody;
    for (Rank& other : ranks_) other.wake.notify_all();
}

void Shared::throw_failed(int rank) const {
    throw Error(ErrorKind::RankLost, "rank " + std::to_string(rank) + " ends because " + failure_);
}

void Shared::throw_overdue(int rank) {
    throw Error(ErrorKind::RankLost,
                to_text(rank, status_of(at(rank))) + "; " + to_text(holder_, status_of(at(holder_))));
}

/// A holder that shows no sign of life for the whole deadline is the only wait that time can end here: a deadlock is
/// seen at once, and a rank that hands the baton on is alive.
void Shared::wait_for_baton(std::unique_lock<std::mutex>& lock, int rank) {
    Rank& own = at(rank);
    while (failure_.empty() && holder_ != rank) {
        const auto until = handover_time_ + std::chrono::duration<double>(own.deadline_seconds);
        own.wake.wait_until(lock, std::chrono::time_point_cast<Clock::duration>(until));
        const bool overdue = seconds_since(handover_time_) > own.deadline_seconds;
        if (overdue && failure_.empty() && holder_ != rank) throw_overdue(rank);
    }
    if (!failure_.empty()) throw_failed(rank);
}

void Shared::wait(std::unique_lock<std::mutex>& lock, int rank, const Wait& wait, std::function<bool()> can_go_on) {
    if (!failure_.empty()) throw_failed(rank);
    Rank& own = at(rank);
    own.can_go_on = std::move(can_go_on);
    own.wait = wait;
    own.wait_start = Clock::now();
    hand_over();
    wait_for_baton(lock, rank);
    own.wait_seconds += seconds_since(own.wait_start);
    own.can_go_on = nullptr;
}

void Shared::hand_over() {
    ++num_handovers_;
    handover_time_ = Clock::now();
    std::vector<int> ready;
    bool all_finished = true;
    do {
        for (int rank = 0; rank < options_.num_ranks; ++rank) {
            const Rank& other = at(rank);
            all_finished &= other.finished;
            if (!other.finished && (!other.can_go_on || other.can_go_on())) ready.push_back(rank);
        }
    } while (ready.empty() && skip_to_next_due());
    if (ready.empty()) {
        holder_ = kNobody;
        if (!all_finished) report_deadlock();
        return;
    }
    holder_ = ready[random(ready.size())];
    at(holder_).wake.notify_all();
}

/// When nobody can go on, late messages come at last: the earliest first. False when there is none.
bool Shared::skip_to_next_due() {
    int64_t next = INT64_MAX;
    late_.remove_if([&](const std::weak_ptr<Message>& entry) {
        const auto message = entry.lock();
        if (!message || is_due(*message)) return true;
        next = std::min(next, message->due);
        return false;
    });
    if (next == INT64_MAX) return false;
    num_handovers_ = next;
    return true;
}

RankStatus Shared::status_of(const Rank& rank) const {
    RankStatus status{rank.position, seconds_since(rank.position_start), std::nullopt};
    if (rank.can_go_on) {
        status.wait = rank.wait;
        status.wait->seconds = seconds_since(rank.wait_start);
    }
    return status;
}

void Shared::report_deadlock() {
    std::string text = "no rank can go on";
    for (int rank = 0; rank < options_.num_ranks; ++rank) {
        text += at(rank).finished ? "; rank " + std::to_string(rank) + " (" + at(rank).position + ") has ended"
                                  : "; " + to_text(rank, status_of(at(rank)));
    }
    failure_ = text;
    if (!first_error_) first_error_ = std::make_exception_ptr(Error(ErrorKind::RankLost, text));
    for (Rank& rank : ranks_) rank.wake.notify_all();
}

// The bytes are copied, as between processes: a receiver that writes into its message must not reach the sender's.
void Shared::send(int sender, int peer, const Channel& channel, const Buffer& bytes) {
    auto message = std::make_shared<Message>(Message{sender, peer, channel, joined(bytes)});
    std::unique_lock lock(mutex_);
    if (!failure_.empty()) throw_failed(sender);
    constexpr uint64_t kScale = uint64_t{1} << 32;
    message->due = num_handovers_;
    if (static_cast<double>(random(kScale)) < options_.delay_probability * static_cast<double>(kScale)) {
        message->due += 1 + static_cast<int64_t>(random(static_cast<uint64_t>(options_.max_delay_handovers)));
        late_.push_back(message);
    }
    message->posted = at(peer).lanes.add({sender, channel}, message).arrival != nullptr;
    at(sender).sent.push_back(std::move(message));
    lock.unlock();
    if (!options_.overlap) finish_sends(sender, false);
}

void Shared::post(int rank, int peer, const Channel& channel, size_t capacity_bytes) {
    const std::lock_guard lock(mutex_);
    const auto match = at(rank).lanes.post({peer, channel}, capacity_bytes);
    if (match.arrival) match.arrival->posted = true;
}

Buffer Shared::receive(int rank, int peer, const Channel& channel) {
    std::unique_lock lock(mutex_);
    const LaneKey key{peer, channel};
    Lanes<Message>& lanes = at(rank).lanes;
    const size_t capacity_bytes = lanes.front(key).capacity_bytes;
    const auto come = [this, &lanes, key] {
        const auto match = lanes.front(key);
        return match.arrival && is_due(*match.arrival);
    };
    wait(lock, rank, {Wait::Kind::Receive, peer, channel, capacity_bytes, 0}, come);
    const auto message = lanes.front(key).arrival;
    lanes.pop(key);
    message->taken = true;
    detail::check_capacity(rank, key, message->bytes.bytes().size(), capacity_bytes);
    return std::move(message->bytes);
}

bool Shared::has_arrived(int rank, int peer, const Channel& channel) {
    const std::lock_guard lock(mutex_);
    const auto match = at(rank).lanes.front({peer, channel});
    return match.arrival && is_due(*match.arrival);
}

void Shared::finish_sends(int rank, bool until_posted) {
    std::unique_lock lock(mutex_);
    auto& sent = at(rank).sent;
    const auto gone = [this, until_posted](const std::shared_ptr<Message>& message) {
        return message->taken || (is_due(*message) && (message->posted || !until_posted));
    };
    sent.remove_if(gone);
    if (sent.empty()) return;
    const Message& oldest = *sent.front();
    const Wait oldest_wait{Wait::Kind::Send, oldest.receiver, oldest.channel, oldest.bytes.bytes().size(), 0};
    wait(lock, rank, oldest_wait, [&sent, gone] { return std::all_of(sent.begin(), sent.end(), gone); });
    sent.remove_if(gone);
}

void Shared::wait_until(int rank, const Wait& what, const std::function<bool()>& done) {
    if (done()) return;
    std::unique_lock lock(mutex_);
    wait(lock, rank, what, done);
}

double Shared::take_wait_seconds(int rank) {
    const std::lock_guard lock(mutex_);
    return std::exchange(at(rank).wait_seconds, 0);
}

void Shared::set_deadline(int rank, double seconds) {
    const std::lock_guard lock(mutex_);
    at(rank).deadline_seconds = seconds;
}

double Shared::deadline_seconds(int rank) {
    const std::lock_guard lock(mutex_);
    return at(rank).deadline_seconds;
}

void Shared::set_position(int rank, const std::string& text) {
    const std::lock_guard lock(mutex_);
    at(rank).position = text;
    at(rank).position_start = Clock::now();
}

class ThreadTransport final : public Transport {
  public:
    ThreadTransport(Shared& shared, int rank) : shared_(shared), rank_(rank) {}
    int rank() const override { return rank_; }
    int size() const override { return shared_.options().num_ranks; }
    void send(int peer, const Channel& channel, Buffer message) override {
        check_peer(peer);
        shared_.send(rank_, peer, channel, message);
    }
    void post_receive(int peer, const Channel& channel, size_t capacity_bytes) override {
        check_peer(peer);
        shared_.post(rank_, peer, channel, capacity_bytes);
    }
    Buffer receive(int peer, const Channel& channel) override { return shared_.receive(rank_, peer, channel); }
    bool has_arrived(int peer, const Channel& channel) override { return shared_.has_arrived(rank_, peer, channel); }
    void finish_sends() override { shared_.finish_sends(rank_, shared_.options().overlap); }
    void wait_until(const Wait& what, const std::function<bool()>& done) override {
        shared_.wait_until(rank_, what, done);
    }
    double take_wait_seconds() override { return shared_.take_wait_seconds(rank_); }
    void set_deadline(double seconds) override { shared_.set_deadline(rank_, seconds); }
    double deadline_seconds() const override { return shared_.deadline_seconds(rank_); }
    void set_position(const std::string& text) override { shared_.set_position(rank_, text); }

  private:
    void check_peer(int peer) const { check(peer >= 0 && peer < size(), "a message's peer is a rank of the job"); }
    Shared& shared_;
    int rank_;
};

}  // namespace

InProcessWorld::InProcessWorld(InProcessOptions options) : options_(options) {
    check(options.num_ranks >= 1 && options.max_delay_handovers >= 1, "an in-process world has ranks and delays");
}

void InProcessWorld::run(const std::function<void(Transport&)>& body) {
    Shared shared(options_);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < options_.num_ranks; ++rank) {
        threads.emplace_back([&shared, &body, rank] {
            try {
                shared.enter(rank);
                ThreadTransport transport(shared, rank);
                body(transport);
                shared.leave(rank);
            } catch (...) {
                shared.fail(rank, std::current_exception());
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    if (shared.first_error()) std::rethrow_exception(shared.first_error());
}

}  // namespace vpp
