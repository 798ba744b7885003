#include "launch/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>

#include "base/elapsed.hpp"
#include "base/error.hpp"
#include "launch/dead_children.hpp"
#include "launch/mpirun_line.hpp"
#include "launch/passed_output.hpp"

namespace vpp {

namespace {

// How often a job is looked at. A SIGUSR1 that reaches mpirun before its ranks live is lost, so it is sent again every
// time; the ranks only note it.
constexpr std::chrono::milliseconds kLookAgain{500};
constexpr std::chrono::seconds kKillAfter{5};
constexpr int kNoSuchProgram = 127;
constexpr size_t kMostWords = 64 << 10;

/// The program in place of this process. Does not return.
[[noreturn]] void become(const std::vector<std::string>& line, int error_pipe) {
    std::vector<char*> words;
    for (const std::string& word : line) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    signal(SIGPIPE, SIG_DFL);
    const int input = open("/dev/null", O_RDONLY);
    if (input >= 0) dup2(input, STDIN_FILENO);
    execvp(words.front(), words.data());
    const int error = errno;
    if (error_pipe >= 0 && write(error_pipe, &error, sizeof error) < 0) _exit(kNoSuchProgram);
    _exit(kNoSuchProgram);
}

int code_of(int status) {
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// Empty as long as it lives, where `options` say not to wait for its end.
std::optional<int> code_if_ended(pid_t child, int options) {
    int status = 0;
    for (;;) {
        const pid_t ended = waitpid(child, &status, options);
        if (ended == child) return code_of(status);
        if (ended == 0) return std::nullopt;
        if (errno == EINTR) continue;
        throw Error(ErrorKind::Io, std::string("cannot learn how a program ended: ") + std::strerror(errno));
    }
}

int code_at_end(pid_t child) {
    return *code_if_ended(child, 0);
}

/// This process gets the signal when its parent dies.
void end_with_parent(pid_t parent, int signal) {
    prctl(PR_SET_PDEATHSIG, signal);
    if (getppid() != parent) _exit(kNoSuchProgram);
}

timespec to_timespec(std::chrono::nanoseconds time) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
    return {seconds.count(), (time - seconds).count()};
}

bool asks_for_end(int signal) {
    return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGUSR1;
}

/// Both streams of a job.
class PassedStreams {
  public:
    void become_streams() const {
        output_.become_stream();
        errors_.become_stream();
    }
    void leave_to_job() {
        output_.leave_to_job();
        errors_.leave_to_job();
    }
    bool pass() {
        const bool is_output = output_.pass();
        return errors_.pass(may_give_errors()) || is_output;
    }
    /// Until there is something to pass on, or `other` can be read.
    void wait(int other, std::chrono::milliseconds time) const {
        const std::array<pollfd, 2> output = output_.awaited(), errors = errors_.awaited(may_give_errors());
        pollfd awaited[]{{other, POLLIN, 0}, output[0], output[1], errors[0], errors[1]};
        poll(awaited, std::size(awaited), static_cast<int>(time.count()));
    }
    bool is_held_up() const { return output_.is_held_up() || errors_.is_held_up(); }
    bool hold_job_up() const { return output_.holds_job_up() || errors_.holds_job_up(); }
    bool is_output_lost() const { return output_.is_lost(); }

  private:
    /// On one terminal an error stands below the lines that were printed before it.
    bool may_give_errors() const { return !(output_.is_terminal() && errors_.is_terminal() && output_.is_held_up()); }

    PassedOutput output_{STDOUT_FILENO}, errors_{STDERR_FILENO};
};

/// Throws Error{Mesh} when there is no such program.
pid_t start_job(const std::vector<std::string>& line, PassedStreams& streams) {
    int error_pipe[2];
    check(pipe2(error_pipe, O_CLOEXEC) == 0, "a pipe can be made");
    const pid_t parent = getpid(), child = fork();
    check(child >= 0, "a process can be started");
    if (child == 0) {
        setpgid(0, 0);
        end_with_parent(parent, SIGUSR1);
        streams.become_streams();
        become(line, error_pipe[1]);
    }
    streams.leave_to_job();
    close(error_pipe[1]);
    int error = 0;
    ssize_t got = 0;
    do got = read(error_pipe[0], &error, sizeof error);
    while (got < 0 && errno == EINTR);
    const bool failed = got == sizeof error;
    close(error_pipe[0]);
    if (!failed) return child;
    waitpid(child, nullptr, 0);
    throw Error(ErrorKind::Mesh, "cannot start " + line.front() + ": " + std::strerror(error) + "; " + kMpirunRemedy);
}

/// A running job and what was asked of it so far.
class RunningJob {
  public:
    RunningJob(pid_t pid, StopManner manner, const HangLimits& limits) : pid_(pid), manner_(manner), limits_(limits) {}

    void ask(int signal) {
        const bool again = signal == SIGINT && interrupted_;
        interrupted_ = interrupted_ || signal == SIGINT;
        end_.stop_asked = true;
        if (again || manner_ == StopManner::End) {
            end_now();
        } else {
            kill(pid_, SIGUSR1);
        }
    }

    std::chrono::milliseconds time_to_look() const {
        return std::max(std::chrono::milliseconds(0),
                        std::chrono::ceil<std::chrono::milliseconds>(look_at_ - Clock::now()));
    }

    void look_if_due() {
        if (Clock::now() < look_at_) return;
        look_at_ = Clock::now() + kLookAgain;
        if (end_.ended_at_once && Clock::now() >= kill_at_) kill(pid_, SIGKILL);
        if (end_.stop_asked && !end_.ended_at_once) kill(pid_, SIGUSR1);
        look_for_hang();
    }

    /// It ends behind its last word, and waits for a reader until then.
    void note_held_up() { held_up_at_ = Clock::now(); }

    ChildEnd ended(int code, bool is_output_lost) {
        end_.code = code;
        end_.is_output_lost = is_output_lost;
        return end_;
    }

  private:
    void end_now() {
        kill(pid_, end_.ended_at_once ? SIGKILL : SIGTERM);
        if (!end_.ended_at_once) kill_at_ = Clock::now() + kKillAfter;
        end_.ended_at_once = true;
    }

    void look_for_hang() {
        const LivingRanks ranks = living_ranks(pid_);
        most_ranks_ = std::max(most_ranks_, ranks.num);
        const bool is_left_behind = ranks.are_all_stopped() && ranks.num < most_ranks_;
        num_looks_left_behind_ = is_left_behind ? num_looks_left_behind_ + 1 : 0;
        num_looks_at_dead_ = has_dead_child(pid_) ? num_looks_at_dead_ + 1 : 0;
        num_looks_without_rank_ = most_ranks_ > 0 && ranks.num == 0 ? num_looks_without_rank_ + 1 : 0;
        // What has waited for a reader has as long again for its last words.
        const auto since_held_up = Clock::now() - held_up_at_;
        if (since_held_up < limits_.dead_child) num_looks_at_dead_ = 0;
        if (since_held_up < limits_.other_hosts) num_looks_without_rank_ = 0;
        if (num_looks_at_dead_ * kLookAgain >= limits_.dead_child) end_hung(Hang::DeadChild, {pid_});
        if (num_looks_without_rank_ * kLookAgain >= limits_.other_hosts) end_hung(Hang::OtherHosts, {pid_});
        // mpirun ends by itself behind them.
        if (num_looks_left_behind_ * kLookAgain >= limits_.left_behind) end_hung(Hang::LeftBehind, ranks.stopped);
    }

    void end_hung(Hang hang, const std::vector<pid_t>& processes) {
        end_.hang = hang;
        for (pid_t process : processes) kill(process, SIGKILL);
    }

    pid_t pid_;
    StopManner manner_;
    HangLimits limits_;
    int most_ranks_ = 0;                                                                  ///< that were seen at once
    int num_looks_at_dead_ = 0, num_looks_without_rank_ = 0, num_looks_left_behind_ = 0;  ///< in a row
    ChildEnd end_;
    bool interrupted_ = false;
    Clock::time_point kill_at_, held_up_at_, look_at_ = Clock::now() + kLookAgain;
};

}  // namespace

struct StopSignals::Masks {
    sigset_t waited, before;
    int ready = -1;  ///< can be read when one of those that are waited for has come
};

bool is_ignored(int signal) {
    struct sigaction now {};
    return sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

StopSignals::StopSignals() : masks_(std::make_unique<Masks>()) {
    sigemptyset(&masks_->waited);
    for (int signal : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD}) sigaddset(&masks_->waited, signal);
    if (!is_ignored(SIGHUP)) sigaddset(&masks_->waited, SIGHUP);
    sigprocmask(SIG_BLOCK, &masks_->waited, &masks_->before);
    masks_->ready = signalfd(-1, &masks_->waited, SFD_CLOEXEC);
    check(masks_->ready >= 0, "signals can be waited for");
}

StopSignals::~StopSignals() {
    while (next_signal() > 0) continue;  // what came too late to mean anything
    close(masks_->ready);
    sigprocmask(SIG_SETMASK, &masks_->before, nullptr);
}

int StopSignals::next_signal() {
    const timespec no_time{};
    return sigtimedwait(&masks_->waited, nullptr, &no_time);
}

ChildEnd StopSignals::run(const std::vector<std::string>& line, StopManner manner, const HangLimits& limits) {
    PassedStreams streams;
    const pid_t child = start_job(line, streams);
    RunningJob job(child, manner, limits);
    std::optional<int> code;
    while (!(code = code_if_ended(child, WNOHANG))) {
        streams.wait(masks_->ready, job.time_to_look());
        streams.pass();
        if (streams.hold_job_up()) job.note_held_up();
        if (const int signal = next_signal(); asks_for_end(signal)) job.ask(signal);
        job.look_if_due();
    }
    while (streams.pass() || streams.is_held_up()) {
        // Who asks for an end now does not wait for a reader that stands still.
        if (streams.is_held_up() && asks_for_end(next_signal())) break;
        if (streams.is_held_up()) streams.wait(masks_->ready, kLookAgain);
    }
    return job.ended(*code, streams.is_output_lost());
}

bool StopSignals::is_stop_asked_within(std::chrono::milliseconds time) {
    const Clock::time_point end = Clock::now() + time;
    for (;;) {
        const auto left = end - Clock::now();
        if (left <= left.zero()) return false;
        const timespec wait = to_timespec(left);
        if (asks_for_end(sigtimedwait(&masks_->waited, nullptr, &wait))) return true;
    }
}

ChildWords listen_to(const std::vector<std::string>& line, std::chrono::milliseconds limit) {
    int words[2];
    check(pipe2(words, O_CLOEXEC) == 0, "a pipe can be made");
    const pid_t parent = getpid(), child = fork();
    check(child >= 0, "a process can be started");
    if (child == 0) {
        setpgid(0, 0);
        end_with_parent(parent, SIGTERM);
        dup2(words[1], STDOUT_FILENO);
        dup2(words[1], STDERR_FILENO);
        become(line, -1);
    }
    close(words[1]);
    ChildWords heard;
    const Clock::time_point end = Clock::now() + limit;
    for (;;) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
        pollfd ready{words[0], POLLIN, 0};
        char buffer[4096];
        const int came = left <= 0 ? 0 : poll(&ready, 1, static_cast<int>(left));
        if (came < 0 && errno == EINTR) continue;
        heard.timed_out = came == 0;
        const ssize_t got = heard.timed_out ? 0 : read(words[0], buffer, sizeof buffer);
        if (got <= 0) break;
        if (heard.text.size() < kMostWords) heard.text.append(buffer, static_cast<size_t>(got));
    }
    close(words[0]);
    if (heard.timed_out) kill(-child, SIGKILL);
    heard.code = code_at_end(child);
    return heard;
}

}  // namespace vpp
