#include "launch/dead_children.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace vpp {
namespace {

TEST(DeadChildren, OneThatIsNotWaitedForIsSeen) {
    EXPECT_FALSE(has_dead_child(getpid()));
    const pid_t child = fork();
    if (child == 0) _exit(0);
    siginfo_t ended;
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
    EXPECT_TRUE(has_dead_child(getpid()));
    EXPECT_FALSE(has_dead_child(getppid()));
    waitpid(child, nullptr, 0);
    EXPECT_FALSE(has_dead_child(getpid()));
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
