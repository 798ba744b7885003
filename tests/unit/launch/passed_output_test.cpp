#include "launch/passed_output.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

namespace vpp {
namespace {

/// What arrives at `to` of what a shell prints; in a process of its own, whose streams may be anything.
int code_of(const std::string& script, int to, bool is_lost) {
    const pid_t tester = fork();
    if (tester == 0) {
        signal(SIGPIPE, SIG_IGN);
        dup2(to, STDOUT_FILENO);
        PassedOutput output(STDOUT_FILENO);
        const pid_t job = fork();
        if (job == 0) {
            signal(SIGPIPE, SIG_DFL);
            output.become_stream();
            execlp("sh", "sh", "-c", script.c_str(), nullptr);
            _exit(127);
        }
        output.leave_to_job();
        while (!output.is_done()) {
            auto awaited = output.awaited();
            poll(awaited.data(), awaited.size(), 50);
            output.pass();
        }
        int status = 0;
        waitpid(job, &status, 0);
        _exit(output.is_lost() == is_lost && WIFEXITED(status) ? WEXITSTATUS(status) : 100);
    }
    int status = 0;
    waitpid(tester, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(PassedOutput, EveryByteArrivesInItsOrder) {
    const auto path = std::filesystem::temp_directory_path() / ("vpp-passed-" + std::to_string(getpid()));
    const int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    EXPECT_EQ(code_of("seq 100000; printf end; exit 7", file, false), 7);
    std::ifstream read(path);
    const std::string text{std::istreambuf_iterator<char>(read), {}};
    EXPECT_TRUE(text.starts_with("1\n2\n3\n"));
    EXPECT_TRUE(text.ends_with("99999\n100000\nend"));
    EXPECT_EQ(text.size(), 588895U + 3U);
    close(file);
    std::filesystem::remove(path);
}

TEST(PassedOutput, AJobOutlivesItsReader) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]);
    EXPECT_EQ(code_of("seq 100000 && exit 7", ends[1], true), 7);
    EXPECT_EQ(code_of("exit 8", ends[1], false), 8) << "nothing was lost";
    close(ends[1]);
}

TEST(PassedOutput, AFullDiskIsKnown) {
    const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    if (full < 0) GTEST_SKIP() << "there is no /dev/full here";
    EXPECT_EQ(code_of("echo x; exit 7", full, true), 7);
    close(full);
}

TEST(PassedOutput, NothingIsReadAheadOfAReaderThatStandsStill) {
    int ends[2], stream[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    ASSERT_EQ(pipe2(stream, O_CLOEXEC | O_NONBLOCK), 0);
    while (write(stream[1], "xxxxxxxx", 8) > 0) continue;
    PassedOutput output(stream[1]);
    const int mine = dup(stream[1]);
    output.become_stream();
    ASSERT_EQ(write(stream[1], "words", 5), 5) << "it is the job's pipe now";
    EXPECT_TRUE(output.pass());
    EXPECT_TRUE(output.is_held_up());
    dup2(mine, stream[1]);
    EXPECT_FALSE(output.pass());
    EXPECT_TRUE(output.is_lost()) << "as long as nobody takes it";
    char piece[1 << 16];
    while (read(stream[0], piece, sizeof piece) > 0) continue;
    EXPECT_TRUE(output.pass());
    EXPECT_FALSE(output.is_held_up());
    EXPECT_EQ(read(stream[0], piece, sizeof piece), 5);
    EXPECT_FALSE(output.is_lost());
    for (int fd : {ends[0], ends[1], stream[0], stream[1], mine}) close(fd);
}

/// A terminal, and who looks at it.
class TerminalTest : public testing::Test {
  protected:
    void SetUp() override {
        master_ = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
        ASSERT_GE(master_, 0);
        ASSERT_EQ(grantpt(master_), 0);
        ASSERT_EQ(unlockpt(master_), 0);
        terminal_ = open(ptsname(master_), O_RDWR | O_NOCTTY | O_CLOEXEC);
        ASSERT_GE(terminal_, 0);
    }
    void TearDown() override {
        close(terminal_);
        close(master_);
    }
    void look() {
        char piece[1 << 12];
        for (ssize_t got; (got = read(master_, piece, sizeof piece)) > 0;)
            seen_.append(piece, static_cast<size_t>(got));
    }
    /// Starts what prints to the terminal.
    pid_t start(PassedOutput& output, const std::string& script) {
        const pid_t job = fork();
        if (job == 0) {
            output.become_stream();
            dup2(terminal_, STDOUT_FILENO);
            execlp("sh", "sh", "-c", script.c_str(), nullptr);
            _exit(127);
        }
        output.leave_to_job();
        return job;
    }
    void pass_until(PassedOutput& output, const std::function<bool()>& is_enough) {
        const Clock::time_point end = Clock::now() + std::chrono::seconds(60);
        while (!is_enough()) {
            ASSERT_LT(Clock::now(), end);
            auto awaited = output.awaited();
            poll(awaited.data(), awaited.size(), 20);
            output.pass();
        }
    }

    int master_ = -1, terminal_ = -1;
    std::string seen_;
};

TEST_F(TerminalTest, ATerminalGetsEveryByteToo) {
    PassedOutput output(terminal_);
    EXPECT_TRUE(output.is_terminal());
    const pid_t job = start(output, "[ -t 1 ] || seq 100000");
    pass_until(output, [&] {
        look();
        return output.is_done();
    });
    look();
    EXPECT_EQ(waitpid(job, nullptr, 0), job);
    EXPECT_TRUE(seen_.starts_with("1\r\n2\r\n")) << seen_.substr(0, 100);
    EXPECT_TRUE(seen_.ends_with("99999\r\n100000\r\n"));
    EXPECT_EQ(seen_.size(), 588895U + 100000U);
    EXPECT_FALSE(output.is_lost());
    EXPECT_EQ(fcntl(terminal_, F_GETFL) & O_NONBLOCK, 0) << "others write there too";
}

TEST_F(TerminalTest, OneThatStandsStillHoldsNoJobUp) {
    PassedOutput output(terminal_);
    const pid_t job = start(output, "seq 300000; exit 7");
    int status = 0;
    pass_until(output, [&] { return waitpid(job, &status, WNOHANG) == job; });
    EXPECT_EQ(WEXITSTATUS(status), 7);
    EXPECT_TRUE(output.is_held_up());
    EXPECT_FALSE(output.holds_job_up());
    pass_until(output, [&] {
        look();
        return output.is_done();
    });
    look();
    EXPECT_TRUE(seen_.starts_with("1\r\n2\r\n"));
    EXPECT_TRUE(seen_.ends_with("299999\r\n300000\r\n"));
    EXPECT_NE(seen_.find("\r\nvpp: "), std::string::npos);
    EXPECT_NE(seen_.find(" lines left out here: the terminal stood still\r\n"), std::string::npos);
    EXPECT_LT(seen_.size(), 1100000U);
    EXPECT_FALSE(output.is_lost()) << "it was told";
}

TEST_F(TerminalTest, OneThatIsGoneIsKnown) {
    PassedOutput output(terminal_);
    close(master_);
    master_ = -1;
    const pid_t job = start(output, "seq 1000; exit 7");
    pass_until(output, [&] { return output.is_done(); });
    EXPECT_EQ(waitpid(job, nullptr, 0), job);
    EXPECT_TRUE(output.is_lost());
}

}  // namespace
}  // namespace vpp
