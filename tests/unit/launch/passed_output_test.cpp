#include "launch/passed_output.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
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
        for (pollfd awaited = output.awaited(); awaited.fd >= 0; awaited = output.awaited()) {
            poll(&awaited, 1, -1);
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

TEST(PassedOutput, ATerminalStaysTheJobs) {
    const int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    ASSERT_GE(master, 0);
    ASSERT_EQ(grantpt(master), 0);
    ASSERT_EQ(unlockpt(master), 0);
    const int terminal = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    ASSERT_GE(terminal, 0);
    EXPECT_EQ(code_of("[ -t 1 ] && exit 7", terminal, false), 7);
    close(terminal);
    close(master);
}

}  // namespace
}  // namespace vpp
