#include "app/unfinished_outputs.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <system_error>

#include "base/error.hpp"

namespace vpp {

namespace fs = std::filesystem;

namespace {

constexpr int kEndingSignals[] = {SIGINT, SIGTERM, SIGHUP};

// Read by the handler.
volatile int signal_pipe = -1;
volatile pid_t own_process = -1;

/// A child has no thread that would end it.
void pass_on(int signal) {
    if (::getpid() != own_process) {
        std::signal(signal, SIG_DFL);
        ::raise(signal);
        return;
    }
    const int before = errno;
    const auto byte = static_cast<unsigned char>(signal);
    [[maybe_unused]] const ssize_t written = ::write(signal_pipe, &byte, 1);
    errno = before;
}

/// One that is ignored stays so.
void replace_handler(int signal, void (*from)(int), void (*to)(int)) {
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler != from) return;
    action = {};
    action.sa_handler = to;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    ::sigaction(signal, &action, nullptr);
}

void remove_begun(const fs::path& folder) {
    const std::string mark = ".tmp-" + std::to_string(::getpid());
    std::error_code error;
    std::vector<fs::path> begun;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        const size_t at = name.rfind(mark);
        if (at == std::string::npos) continue;
        const std::string rest = name.substr(at + mark.size());
        if (rest.empty() || rest.front() == '-') begun.push_back(entry->path());
    }
    for (const fs::path& path : begun) fs::remove_all(path, error);
}

}  // namespace

UnfinishedOutputs::UnfinishedOutputs(const std::vector<std::string>& outputs) {
    for (const std::string& output : outputs) {
        if (output.empty()) continue;
        std::error_code ignored;
        const fs::path place = fs::weakly_canonical(fs::absolute(output), ignored);
        folders_.push_back(place);
        folders_.push_back((place.has_filename() ? place : place.parent_path()).parent_path());
    }
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return;  // then signals leave what they leave
    own_process = ::getpid();
    signal_pipe = ends[1];
    waiter_ = std::thread([this, fd = ends[0]] { wait_for_signal(fd); });
    for (const int signal : kEndingSignals) replace_handler(signal, SIG_DFL, pass_on);
}

UnfinishedOutputs::~UnfinishedOutputs() {
    if (!waiter_.joinable()) return;
    for (const int signal : kEndingSignals) replace_handler(signal, pass_on, SIG_DFL);
    ::close(signal_pipe);
    waiter_.join();
}

void UnfinishedOutputs::wait_for_signal(int fd) const {
    unsigned char signal = 0;
    ssize_t got = 0;
    do {
        got = ::read(fd, &signal, 1);
    } while (got < 0 && errno == EINTR);
    ::close(fd);
    if (got != 1) return;
    for (const fs::path& folder : folders_) remove_begun(folder);
    std::signal(signal, SIG_DFL);
    ::kill(::getpid(), signal);
}

}  // namespace vpp
