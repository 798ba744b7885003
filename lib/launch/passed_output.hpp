#pragma once
// What a job prints, on its way to a stream of this process. The job does not write there itself: a reader that goes
// away would end it, and nobody would learn of a full disk.
#include <poll.h>

#include <string>

namespace vpp {

/// One stream of a job that this process starts. A terminal is the job's own: mpirun tells the ranks its width.
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

    /// What to wait for until there is something to do; poll passes over it when there is nothing.
    pollfd awaited() const;
    /// Passes on what can be without waiting, a piece at a time, and drops what nobody takes. Returns: whether it did
    /// something.
    bool pass();
    /// Whether something was read that is not written yet.
    bool is_held_up() const { return !held_.empty(); }
    /// Whether some of it did not arrive.
    bool is_lost() const { return is_lost_ || is_held_up(); }

  private:
    void take();
    void give();

    int stream_;
    int source_ = -1;  ///< what comes from the job; -1: a terminal, or all has come
    int sink_ = -1;    ///< the job's end
    std::string held_;
    bool is_lost_ = false;
};

}  // namespace vpp
