#pragma once
// What a job prints, on its way to a stream of this process. The job does not write there itself: a reader that goes
// away would end it, nobody would learn of a full disk, and a terminal that stands still (Ctrl-S, the far end asleep)
// would stop its ranks within a step.
#include <poll.h>

#include <array>

#include "base/elapsed.hpp"
#include "launch/output_backlog.hpp"

namespace vpp {

/// One stream of a job that this process starts. Files and pipes get every byte, however long they take. For a terminal
/// the job is always read, and what the terminal does not take in time is left out (OutputBacklog). A terminal that
/// this process may not open once more, as that of another user behind su, stays the job's own.
/// Requires: SIGPIPE is ignored.
class PassedOutput {
  public:
    explicit PassedOutput(int stream);
    ~PassedOutput();
    PassedOutput(const PassedOutput&) = delete;
    PassedOutput& operator=(const PassedOutput&) = delete;

    /// In the new process.
    void become_stream() const;
    /// In this one, once the other is there.
    void leave_to_job();

    /// What to wait for until there is something to do; poll passes over it when there is nothing. Without `may_give`
    /// nothing is to be written now.
    std::array<pollfd, 2> awaited(bool may_give = true) const;
    /// Passes on what can be without waiting, a piece at a time, and drops what nobody takes. Returns: whether it did
    /// something.
    bool pass(bool may_give = true);
    /// Whether something was read that is not written yet.
    bool is_held_up() const { return !held_.is_empty(); }
    /// Whether the job has to wait, since the reader takes nothing now.
    bool holds_job_up() const;
    /// Whether all has come and gone.
    bool is_done() const { return source_ < 0 && !is_held_up(); }
    /// Whether some of it did not arrive; what is left out for a terminal, and told there, does not count.
    bool is_lost() const { return is_lost_ || is_held_up(); }
    bool is_terminal() const { return is_terminal_; }

  private:
    bool can_give() const { return is_held_up() && Clock::now() >= give_at_; }
    void take();
    void give();

    int stream_;
    bool is_terminal_;
    int target_ = -1;  ///< where it is written: the stream, or its terminal once more, so that no write waits
    int source_ = -1;  ///< what comes from the job; -1: the terminal is the job's own, or all has come
    int sink_ = -1;    ///< the job's end
    OutputBacklog held_;
    Clock::time_point give_at_;  ///< not before
    bool is_lost_ = false;
};

}  // namespace vpp
