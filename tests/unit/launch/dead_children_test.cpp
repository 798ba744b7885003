#include "launch/dead_children.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace vpp {
namespace {

TEST(DeadChildren, OneThatIsNotWaitedForIsSeen) {
    EXPECT_FALSE(has_dead_child(getpid()));
    const pid_t child = fork();
    if (child == 0) _exit(0);
    siginfo_t ended;
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
    EXPECT_TRUE(has_dead_child(getpid()));
    EXPECT_FALSE(has_dead_child(child));
    waitpid(child, nullptr, 0);
    EXPECT_FALSE(has_dead_child(getpid()));
}

TEST(DeadChildren, ARankIsKnownByWhatMpirunTellsIt) {
    EXPECT_EQ(living_ranks(getpid()).num, 0);
    const auto lives = [](const char* variable, int num_looks) {
        const pid_t child = fork();
        if (child == 0) {
            char* const environment[] = {const_cast<char*>(variable), nullptr};
            char* const words[] = {const_cast<char*>("sleep"), const_cast<char*>("10"), nullptr};
            execve("/bin/sleep", words, environment);
        }
        bool found = false;
        for (int look = 0; look < num_looks && !found; ++look) {
            usleep(10'000);
            found = living_ranks(getpid()).num > 0;
        }
        if (found) {
            EXPECT_FALSE(living_ranks(getpid()).are_all_stopped());
            kill(child, SIGSTOP);
            waitpid(child, nullptr, WUNTRACED);
            EXPECT_EQ(living_ranks(getpid()).stopped, std::vector<pid_t>{child});
            EXPECT_TRUE(living_ranks(getpid()).are_all_stopped());
        }
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
        return found;
    };
    EXPECT_TRUE(lives("OMPI_COMM_WORLD_RANK=1", 1000));
    EXPECT_FALSE(lives("OMPI_COMM_WORLD_RANKS=1", 20));
    EXPECT_EQ(living_ranks(getpid()).num, 0);
}

TEST(DeadChildren, LivingOnesAreNone) {
    const pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    EXPECT_FALSE(has_dead_child(getpid()));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace vpp
