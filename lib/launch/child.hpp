#pragma once
// Other programs: one that runs a job while signals to this process are turned into what the job understands, and short
// ones whose words are wanted.
#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace vpp {

/// What the signals that ask for an end do to a job.
enum class StopManner {
    Save,  ///< SIGINT, SIGTERM and SIGHUP become SIGUSR1: the job saves and ends by itself, however long that takes
    End,   ///< nothing is to be saved: it is ended by SIGTERM
};

/// How long mpirun may take until it is taken for hung.
struct HangLimits {
    std::chrono::seconds dead_child{30};   ///< to notice that a rank has ended
    std::chrono::seconds other_hosts{10};  ///< to end behind the last rank of this host
    std::chrono::seconds left_behind{30};  ///< for a rank that is stopped when the others have ended
};

/// What mpirun waited for when it, or the rank, was killed.
enum class Hang {
    No,
    DeadChild,   ///< it took no notice of the end of its own child
    OtherHosts,  ///< the ranks of this host had ended, and other hosts did not answer
    LeftBehind,  ///< a rank was stopped (SIGSTOP) when all others had ended: nobody was left to notice it
};

/// How a job ended.
struct ChildEnd {
    int code = 0;                 ///< its exit code; 128 + the signal that ended it
    bool stop_asked = false;      ///< a signal to this process asked for the end
    bool ended_at_once = false;   ///< by a second SIGINT, or since there was nothing to save
    Hang hang = Hang::No;         ///< it hung, and was killed
    bool is_output_lost = false;  ///< its standard output did not all arrive
};

/// Whether this process ignores the signal: nohup starts it so that it ignores SIGHUP.
bool is_ignored(int signal);

/// While it lives, signals that ask for an end wait until a job is run; one that is not started can be given up.
/// Invariant: one at a time; the process has no other threads when it is made. SIGHUP is left alone where it is ignored
/// (nohup).
class StopSignals {
  public:
    StopSignals();
    ~StopSignals();
    StopSignals(const StopSignals&) = delete;
    StopSignals& operator=(const StopSignals&) = delete;

    /// Runs a program to its end, with this process's output and no input. It has a process group of its own, so that
    /// Ctrl-C reaches it through here only; when this process is killed it gets SIGUSR1. A second SIGINT ends it by
    /// SIGTERM, and by SIGKILL where that does not help within 5 s. One that hangs itself gets SIGKILL: mpirun of
    /// Open MPI 4.1 leaves a dead child alone when a rank dies while it connects, and waits a quarter of an hour for a
    /// host that a cut link has taken away; a pipe whose reader is slow holds it up without that. What nobody takes of
    /// its output is dropped, and the job goes on.
    /// Requires: SIGPIPE is ignored.
    /// Throws:   Error{Mesh} when there is no such program.
    ChildEnd run(const std::vector<std::string>& line, StopManner manner, const HangLimits& limits = {});

    /// Waits, shorter when an end is asked for: then true.
    bool is_stop_asked_within(std::chrono::milliseconds time);

  private:
    struct Masks;
    int next_signal();  ///< that has come; -1: none
    std::unique_ptr<Masks> masks_;
};

/// What a program said and how it ended.
struct ChildWords {
    int code = 0;  ///< 128 + signal; 127: there is no such program
    bool timed_out = false;
    std::string text;  ///< its output and errors together, at most 64 KiB
};

/// Runs a short program without input; ends it after `limit`, and when this process dies.
ChildWords listen_to(const std::vector<std::string>& line, std::chrono::milliseconds limit);

}  // namespace vpp
