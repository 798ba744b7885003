#include "graph/trial_load.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <new>
#include <utility>

#include "base/bytes.hpp"
#include "base/confinement.hpp"
#include "base/elapsed.hpp"
#include "graph/jit_load.hpp"

namespace vpp {

namespace {

constexpr int kAnswerFd = 3;

/// What the child says: nothing when the file loads, else the kind of the error and its text.
using Answer = std::optional<std::pair<ErrorKind, std::string>>;

uint64_t address_space_bytes() {
    uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

uint64_t file_bytes(const std::string& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

/// Gives up what the child does not need; nothing it prints is seen.
void confine(int answer, uint64_t memory_bytes, const TrialLimits& limits) {
    const int nothing = ::open("/dev/null", O_RDWR);
    for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing, fd);
    if (answer != kAnswerFd) ::dup2(answer, kAnswerFd);
    ::close_range(kAnswerFd + 1, ~0U, 0);
    confine_process({.memory_bytes = memory_bytes, .cpu_seconds = limits.cpu_seconds});
}

void answer(ErrorKind kind, const std::string& text) {
    const int number = exit_code(kind);
    std::string message(reinterpret_cast<const char*>(&number), sizeof number);
    message += text;
    for (size_t done = 0; done < message.size();) {
        const ssize_t wrote = ::write(kAnswerFd, message.data() + done, message.size() - done);
        if (wrote <= 0) return;
        done += static_cast<size_t>(wrote);
    }
}

[[noreturn]] void run_child(const std::string& path, const std::vector<std::string>& trusted) {
    try {
        std::vector<LoadedFile> loaded;
        load_module(std::make_shared<const Archive>(path), trusted, loaded);
    } catch (const Error& error) {
        answer(error.kind(), error.problems().front().message);
    } catch (const std::bad_alloc&) {
        answer(ErrorKind::BadData, path +
                                       ": loading it needs far more memory than the file has; it is broken or "
                                       "hostile; export the model again");
    } catch (const std::exception& error) {
        answer(ErrorKind::BadData, path + ": cannot be loaded: " + printable(error.what()));
    }
    ::_exit(0);  // without the parent's buffers and handlers
}

/// A child and the pipe from it. The destructor ends it.
class Child {
  public:
    Child(const std::string& path, const std::vector<std::string>& trusted, const TrialLimits& limits) {
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) throw Error(ErrorKind::Io, failed("make a pipe"));
        const uint64_t memory_bytes = address_space_bytes() + 2 * file_bytes(path) + limits.memory_bytes;
        pid_ = ::fork();
        if (pid_ == 0) {
            confine(ends[1], memory_bytes, limits);
            run_child(path, trusted);
        }
        ::close(ends[1]);
        pipe_ = ends[0];
        if (pid_ < 0) {
            ::close(pipe_);
            throw Error(ErrorKind::Io, failed("start a process"));
        }
    }
    ~Child() {
        ::close(pipe_);
        if (pid_ <= 0) return;
        ::kill(pid_, SIGKILL);
        try_to_wait();
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    /// All that it says, up to its end; empty when the time is over before.
    std::optional<std::string> read_all(Clock::time_point deadline) const {
        std::string text;
        while (true) {
            const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
            pollfd poll{pipe_, POLLIN, 0};
            const int ready = ::poll(&poll, 1, static_cast<int>(std::max<int64_t>(left, 0)));
            if (ready < 0 && errno == EINTR) continue;
            if (ready <= 0) return std::nullopt;
            char block[4096];
            const ssize_t got = ::read(pipe_, block, sizeof block);
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) return text;
            text.append(block, static_cast<size_t>(got));
        }
    }

    /// Its status as waitpid gives it.
    int wait() {
        const std::optional<int> status = try_to_wait();
        if (!status) throw Error(ErrorKind::Io, failed("learn how the process ended that was started"));
        return *status;
    }

  private:
    /// Empty with errno where there is none to be had.
    std::optional<int> try_to_wait() {
        const pid_t pid = std::exchange(pid_, -1);
        int status = 0;
        while (::waitpid(pid, &status, 0) < 0) {
            if (errno != EINTR) return std::nullopt;
        }
        return status;
    }
    static std::string failed(const std::string& what) {
        return "cannot " + what + " to try the model file: " + std::strerror(errno);
    }
    pid_t pid_ = -1;
    int pipe_ = -1;
};

Answer endless(const std::string& path, const std::string& limit) {
    return std::pair{ErrorKind::Refused,
                     path + ": loading it does not end (" + limit +
                         "); the file is broken or hostile, or this machine is very busy; export the model again"};
}

Answer try_file(const std::string& path, const std::vector<std::string>& trusted, const TrialLimits& limits) {
    Child child(path, trusted, limits);
    const auto text = child.read_all(Clock::now() + limits.wall);
    if (!text) return endless(path, "stopped after " + std::to_string(limits.wall.count()) + " s");
    const int status = child.wait();
    if (WIFSIGNALED(status)) {
        const int signal = WTERMSIG(status);
        if (signal == SIGXCPU)
            return endless(path, "stopped after " + std::to_string(limits.cpu_seconds) + " s of processor time");
        return std::pair{ErrorKind::BadData, path + ": LibTorch crashes when it loads this model (signal " +
                                                 std::to_string(signal) + ", " + ::strsignal(signal) +
                                                 "); export it again or copy the file anew"};
    }
    if (text->size() < sizeof(int)) return std::nullopt;
    int number = 0;
    std::memcpy(&number, text->data(), sizeof number);
    return std::pair{static_cast<ErrorKind>(number), text->substr(sizeof number)};
}

}  // namespace

std::vector<TrialFile> trial_files(const Plan& plan) {
    std::vector<TrialFile> files;
    const auto add = [&](const std::string& path, std::optional<SourcePosition> position) {
        if (!path.empty() && std::ranges::find(files, path, &TrialFile::path) == files.end())
            files.push_back({path, std::move(position)});
    };
    add(plan.model.file, std::nullopt);
    add(plan.model.eval_file, plan.where("model.eval_file"));
    for (size_t stage = 0; stage < plan.pipeline.stages.size(); ++stage) {
        const std::string table = "pipeline.stage[" + std::to_string(stage) + "].";
        add(plan.pipeline.stages[stage].file, plan.where(table + "file"));
        add(plan.pipeline.stages[stage].eval_file, plan.where(table + "eval_file"));
    }
    return files;
}

void trial_load(const std::vector<TrialFile>& files, const std::vector<std::string>& trusted,
                const TrialLimits& limits) {
    std::vector<Problem> problems;
    ErrorKind kind = ErrorKind::BadData;
    for (const TrialFile& file : files) {
        const Answer answer = try_file(file.path, trusted, limits);
        if (!answer) continue;
        if (problems.empty()) kind = answer->first;
        problems.push_back({answer->second, file.position});
    }
    if (!problems.empty()) throw Error(kind, std::move(problems));
}

}  // namespace vpp
