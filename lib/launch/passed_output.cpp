#include "launch/passed_output.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "base/error.hpp"

namespace vpp {

PassedOutput::PassedOutput(int stream) : stream_(stream) {
    if (isatty(stream)) return;
    int ends[2];
    check(pipe2(ends, O_CLOEXEC) == 0, "a pipe can be made");
    source_ = ends[0];
    sink_ = ends[1];
}

PassedOutput::~PassedOutput() {
    for (const int fd : {source_, sink_}) {
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

pollfd PassedOutput::awaited() const {
    return held_.empty() ? pollfd{source_, POLLIN, 0} : pollfd{stream_, POLLOUT, 0};
}

bool PassedOutput::pass() {
    pollfd ready = awaited();
    if (ready.fd < 0 || poll(&ready, 1, 0) <= 0) return false;
    held_.empty() ? take() : give();
    return true;
}

void PassedOutput::take() {
    char piece[PIPE_BUF];  // so much fits into a pipe that is ready
    const ssize_t got = read(source_, piece, sizeof piece);
    if (got > 0) {
        if (!is_lost_) held_.assign(piece, static_cast<size_t>(got));
    } else if (got == 0 || errno != EINTR) {
        close(source_);
        source_ = -1;
    }
}

void PassedOutput::give() {
    const ssize_t written = write(stream_, held_.data(), held_.size());
    if (written >= 0) {
        held_.erase(0, static_cast<size_t>(written));
    } else if (errno != EINTR && errno != EAGAIN) {
        is_lost_ = true;
        held_.clear();
    }
}

}  // namespace vpp
