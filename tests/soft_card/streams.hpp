#pragma once
// Streams of a soft card: each is a thread that does what it is given, in order and at times late, as a card does what
// the host gave it long ago.
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace vpp::soft_card {

/// The cards of this process do nothing more, as after a kernel that has failed (CUDA's cudaErrorAssert).
void fail();
bool has_failed();

/// A moment in a stream: reached when all that the stream was given before it is done.
class Moment {
  public:
    bool is_reached() const { return nanoseconds_ != 0; }
    void reach();
    void wait() const { nanoseconds_.wait(0); }
    /// The same for a host, which is told when the cards have failed.
    void wait_of_host() const;
    /// When it was reached, on the host's clock. Requires: it is reached.
    int64_t nanoseconds() const { return nanoseconds_; }

  private:
    std::atomic<int64_t> nanoseconds_ = 0;
};

/// One of the few queues by which a card takes what its streams are given. What is next in it goes on to the card when
/// its stream has done what comes before, and keeps what other streams put behind it waiting until then.
class Queue {
  public:
    /// The last place.
    uint64_t enter() { return num_entered_++; }
    /// Waits until it is the first; it stays so until leave().
    void come_first(uint64_t place);
    void leave();

  private:
    std::atomic<uint64_t> num_entered_ = 0, num_left_ = 0;
};

class Stream {
  public:
    /// The thread lives as long as the process: LibTorch keeps its streams to the end too.
    /// `queue`: of the card; none for a thread of the host.
    explicit Stream(Queue* queue = nullptr);
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    void give(std::function<void()> work);
    std::shared_ptr<const Moment> mark();
    void wait_for(std::shared_ptr<const Moment> moment);
    bool is_idle();
    /// From now on it does nothing, and takes note of what it is given instead.
    void begin_recording();
    bool is_recording();
    /// Who replays what is recorded has to wait until it is done.
    void have_replays_waited_for();
    /// Something was asked of it, or of its card, that a recording cannot have.
    void spoil_recording();
    struct Recorded {
        std::vector<std::function<void()>> work;
        bool is_waited_for = false;
        bool is_spoiled = false;
    };
    /// What it was given since then; it goes on as before.
    Recorded end_recording();
    /// Waits until all that it was given is done, or the cards have failed.
    void finish();

  private:
    struct Task {
        std::function<void()> work;
        bool may_be_late = false;
        uint64_t place = 0;  ///< in the queue
    };
    void put(Task task);
    [[noreturn]] void run();

    void do_in_turn(const Task& task);

    Queue* queue_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Task> tasks_;  ///< the first is being done
    bool is_recording_ = false;
    Recorded recorded_;
};

/// Whether the environment has this variable with this value.
bool is_told(const char* variable, const std::string& value);

/// Waits for some microseconds, in one call of a few. VPP_SOFT_CARD_LATE=0: never.
void be_late();

}  // namespace vpp::soft_card
