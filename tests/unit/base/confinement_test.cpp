#include "base/confinement.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>

namespace vpp {
namespace {

/// How a confined child ends that does this; `work` says whether it could.
int status_of(const Confinement& confinement, const std::function<bool()>& work, bool confined = true) {
    const pid_t child = ::fork();
    if (child == 0) {
        if (confined) confine_process(confinement);
        ::_exit(work() ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status;
}

/// What it can do only unconfined.
void expect_prevented(const Confinement& confinement, const std::function<bool()>& work) {
    EXPECT_EQ(status_of(confinement, work, /*confined=*/false), 0) << "the measure itself";
    EXPECT_NE(status_of(confinement, work), 0);
}

constexpr uint64_t kPlenty = uint64_t{1} << 50;  // sanitizers take terabytes of address space

TEST(Confinement, WritesNoFile) {
    char name[] = "/tmp/vpp_confinement_XXXXXX";
    const int file = ::mkstemp(name);
    ASSERT_GE(file, 0);
    expect_prevented({.memory_bytes = kPlenty}, [&] { return ::write(file, "x", 1) == 1; });
    ::close(file);
    ::unlink(name);
}

TEST(Confinement, OpensFewFiles) {
    const auto open_some = [] {
        for (int i = 0; i < 20; ++i) {
            if (::open("/dev/null", O_RDONLY) < 0) return false;
        }
        return true;
    };
    expect_prevented({.memory_bytes = kPlenty, .most_files = 16}, open_some);
}

TEST(Confinement, TakesLittleMemory) {
    const auto map_some = [] {
        return ::mmap(nullptr, size_t{1} << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
    };
    expect_prevented({.memory_bytes = uint64_t{1} << 29}, map_some);
}

TEST(Confinement, EndsWhenItsTimeIsOver) {
    const auto work = [] {
        for (volatile bool on = true; on;) continue;
        return true;
    };
    const int status = status_of({.memory_bytes = kPlenty, .cpu_seconds = 1}, work);
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), SIGXCPU);
}

TEST(Confinement, SignalsThatStopAJobPassItBy) {
    const auto stop = [] { return ::raise(SIGTERM) == 0; };
    EXPECT_EQ(status_of({.memory_bytes = kPlenty}, stop), 0);
    EXPECT_NE(status_of({}, stop, /*confined=*/false), 0) << "the measure itself";
}

}  // namespace
}  // namespace vpp
