#include "data/tokenizer.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>

#include "base/bad_data.hpp"
#include "base/bytes.hpp"
#include "base/confinement.hpp"
#include "base/error.hpp"
#include "base/file.hpp"

namespace vpp {

namespace {

constexpr uint64_t kMostModelBytes = uint64_t{256} << 20;
constexpr int64_t kMostReasonBytes = 10'000;

/// Normalized text can be longer than what was written: one character of three bytes stands for 18 in Unicode's tables.
int64_t most_tokens(uint64_t message_bytes) {
    return 64 * (static_cast<int64_t>(message_bytes) + 1);
}

[[noreturn]] void become_tokenizer(const std::string& program, int socket, const Confinement& confinement) {
    const int nothing = ::open("/dev/null", O_WRONLY);
    ::dup2(socket, STDIN_FILENO);
    ::dup2(socket, STDOUT_FILENO);
    ::dup2(nothing, STDERR_FILENO);
    ::close_range(STDERR_FILENO + 1, ~0U, 0);
    confine_process(confinement);
    ::execl(program.c_str(), program.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
}

Bytes read_model(const std::string& path) {
    const InputFile file(path);
    if (file.size_bytes() == 0) refuse_data(path, "the file is empty");
    if (file.size_bytes() > kMostModelBytes) {
        refuse_data(path, "no SentencePiece model: it has " + std::to_string(file.size_bytes()) + " bytes (at most " +
                              std::to_string(kMostModelBytes) + ")");
    }
    Bytes bytes(static_cast<size_t>(file.size_bytes()));
    file.read(0, bytes);
    return bytes;
}

}  // namespace

Tokenizer::Tokenizer(const std::string& model, const std::string& program, const TokenizerLimits& limits)
    : model_(model), limits_(limits) {
    const Bytes bytes = read_model(model);
    if (!std::filesystem::exists(program)) {
        throw Error(ErrorKind::MissingInput,
                    program +
                        ": the program that works with SentencePiece models is not there; it is built with vpp "
                        "and lies beside it: build again, or copy both");
    }
    start(program);
    try {
        vocabulary_ = std::numeric_limits<int32_t>::max();
        const std::vector<int32_t> facts = ask(bytes);
        if (facts.size() != 2 || facts[0] < 1) fail_model("its vocabulary is empty");
        vocabulary_ = facts[0];
        if (facts[1] >= 0 && facts[1] < vocabulary_) end_token_ = facts[1];
    } catch (...) {
        wait();
        throw;
    }
}

Tokenizer::~Tokenizer() {
    wait();
}

void Tokenizer::start(const std::string& program) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        throw Error(ErrorKind::Io, std::string("cannot make a pipe to the tokenizer: ") + std::strerror(errno));
    }
    pid_ = ::fork();
    if (pid_ == 0) become_tokenizer(program, ends[1], {.memory_bytes = limits_.memory_bytes});
    const int error = errno;
    ::close(ends[1]);
    socket_ = ends[0];
    if (pid_ < 0) {
        wait();
        throw Error(ErrorKind::Io, std::string("cannot start a process for the tokenizer: ") + std::strerror(error));
    }
    const timeval silence{limits_.silence.count(), 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof silence);
    ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &silence, sizeof silence);
}

/// Ends the child. Its status as waitpid gives it.
int Tokenizer::wait() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
    int status = 0;
    if (pid_ < 0) return status;
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
    pid_ = -1;
    return status;
}

/// What the child could not do: with the model at first, then with a text.
void Tokenizer::fail(const std::string& what) {
    if (source_.empty()) fail_model(what);
    wait();
    refuse_data(source_, what +
                             "; cut the file into smaller documents, or take each line as one with --lines; where "
                             "short ones fail too, copy or train the model anew: " +
                             printable(model_));
}

void Tokenizer::fail_model(const std::string& what) {
    wait();
    refuse_data(model_, what + "; it is broken, or no SentencePiece model: copy or train it anew");
}

/// The child does not answer, or has ended: then its socket is closed, but it may still be on its way out.
void Tokenizer::fail_silent(bool timed_out) {
    if (timed_out)
        fail("SentencePiece does not end with it (stopped after " + std::to_string(limits_.silence.count()) + " s)");
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
    pid_ = -1;
    if (WIFSIGNALED(status)) {
        const int signal = WTERMSIG(status);
        fail("SentencePiece crashes with it (signal " + std::to_string(signal) + ", " + ::strsignal(signal) + ")");
    }
    fail("SentencePiece gives it up (code " + std::to_string(WEXITSTATUS(status)) + ")");
}

void Tokenizer::send(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return fail_silent(errno == EAGAIN || errno == EWOULDBLOCK);
        bytes = bytes.subspan(static_cast<size_t>(sent));
    }
}

void Tokenizer::receive(std::span<std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t got = ::recv(socket_, bytes.data(), bytes.size(), 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return fail_silent(got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
        bytes = bytes.subspan(static_cast<size_t>(got));
    }
}

std::vector<int32_t> Tokenizer::ask(std::span<const std::byte> message) {
    const uint64_t num_bytes = message.size();
    send(std::as_bytes(std::span(&num_bytes, 1)));
    send(message);
    int64_t count = 0;
    receive(std::as_writable_bytes(std::span(&count, 1)));
    if (count < 0) {
        Bytes reason(static_cast<size_t>(std::min(kMostReasonBytes, -std::max(count, -kMostReasonBytes))));
        receive(reason);
        fail(printable({reinterpret_cast<const char*>(reason.data()), reason.size()}));
    }
    if (count > most_tokens(num_bytes))
        fail_model("it makes " + std::to_string(count) + " tokens of a document of " + std::to_string(num_bytes) +
                   " bytes");
    std::vector<int32_t> numbers(static_cast<size_t>(count));
    receive(std::as_writable_bytes(std::span(numbers)));
    return numbers;
}

std::vector<int32_t> Tokenizer::encode(std::span<const std::byte> document, const std::string& source) {
    check(pid_ >= 0 && document.size() <= kMostDocumentBytes, "a document that the tokenizer can take");
    source_ = source;
    std::vector<int32_t> tokens = ask(document);
    for (const int32_t token : tokens) {
        if (token < 0 || token >= vocabulary_) {
            fail_model("it makes token " + std::to_string(token) + ", outside of its vocabulary of " +
                       std::to_string(vocabulary_));
        }
    }
    return tokens;
}

}  // namespace vpp
