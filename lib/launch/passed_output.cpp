#include "launch/passed_output.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <string>

#include "base/error.hpp"

namespace vpp {

namespace {

// A terminal may say that it takes something and then take nothing, as with room for less than the end of a line.
constexpr std::chrono::milliseconds kGiveAgain{100};

/// The same terminal, but with a way to write that never waits; the one that others share is left alone. -1: there is
/// none.
int open_once_more(int terminal) {
    const std::string path = "/proc/self/fd/" + std::to_string(terminal);
    return open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

}  // namespace

PassedOutput::PassedOutput(int stream) : stream_(stream), is_terminal_(isatty(stream) == 1) {
    target_ = is_terminal_ ? open_once_more(stream) : stream;
    if (target_ < 0) return;
    int ends[2];
    check(pipe2(ends, O_CLOEXEC) == 0, "a pipe can be made");
    source_ = ends[0];
    sink_ = ends[1];
}

PassedOutput::~PassedOutput() {
    for (const int fd : {source_, sink_, is_terminal_ ? target_ : -1}) {
        if (fd >= 0) close(fd);
    }
}

void PassedOutput::become_stream() const {
    if (sink_ < 0) return;
    dup2(sink_, stream_);
    // The job saves and ends when this process is killed; until then its pipe has a reader.
    fcntl(source_, F_SETFD, 0);
}

void PassedOutput::leave_to_job() {
    if (sink_ >= 0) close(sink_);
    sink_ = -1;
}

std::array<pollfd, 2> PassedOutput::awaited(bool may_give) const {
    const bool takes = is_terminal_ || !is_held_up(), gives = may_give && can_give();
    return {pollfd{takes ? source_ : -1, POLLIN, 0}, pollfd{gives ? target_ : -1, POLLOUT, 0}};
}

bool PassedOutput::pass(bool may_give) {
    std::array<pollfd, 2> ready = awaited(may_give);
    if (poll(ready.data(), ready.size(), 0) <= 0) return false;
    if (ready[0].revents != 0) take();
    const bool is_ready = is_terminal_ || ready[1].revents != 0;
    if (may_give && is_ready && can_give()) give();
    return true;
}

bool PassedOutput::holds_job_up() const {
    pollfd ready{target_, POLLOUT, 0};
    return !is_terminal_ && is_held_up() && poll(&ready, 1, 0) == 0;
}

void PassedOutput::take() {
    char piece[PIPE_BUF];  // so much fits into a pipe that is ready
    const ssize_t got = read(source_, piece, sizeof piece);
    if (got > 0) {
        if (!is_lost_) held_.append({piece, static_cast<size_t>(got)});
    } else if (got == 0 || errno != EINTR) {
        close(source_);
        source_ = -1;
    }
}

void PassedOutput::give() {
    const std::string_view next = held_.next();
    const ssize_t written = write(target_, next.data(), next.size());
    if (written >= 0) {
        held_.take_off(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
        give_at_ = Clock::now() + kGiveAgain;
    } else if (errno != EINTR) {
        is_lost_ = true;
        held_.clear();
    }
}

}  // namespace vpp
