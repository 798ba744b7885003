#include "base/file_lock.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <optional>

#include "base/error.hpp"

namespace vpp {
namespace {

namespace fs = std::filesystem;

class FileLockTest : public ::testing::Test {
  protected:
    void TearDown() override { fs::remove(path_); }
    std::string refusal() const {
        try {
            const FileLock lock(path_, "second");
        } catch (const Error& error) {
            EXPECT_EQ(error.kind(), ErrorKind::Output);
            return error.what();
        }
        return "";
    }
    const fs::path path_ = fs::temp_directory_path() / ("vpp-lock-" + std::to_string(::getpid()));
};

TEST_F(FileLockTest, WhoHasNoNameLeavesThatOfTheLastHolder) {
    { const FileLock lock(path_, "first"); }
    const FileLock lock(path_, "");
    EXPECT_EQ(last_holder(path_), "first");
    EXPECT_NE(refusal().find("is held by first"), std::string::npos);
}

TEST_F(FileLockTest, OneAtATimeAndTheHolderIsNamed) {
    {
        const FileLock lock(path_, "pid 7 on host\x1b[2J a");
        const std::string text = refusal();
        EXPECT_NE(text.find("is held by pid 7 on host"), std::string::npos) << text;
        EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
    }
    EXPECT_EQ(refusal(), "") << "a lock ends with its holder";
    const FileLock again(path_, "x");
    EXPECT_NE(refusal().find("is held by x"), std::string::npos) << "the longer text is gone";
}

TEST_F(FileLockTest, AKilledHolderHoldsNothing) {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        const FileLock lock(path_, "the child");
        char byte = 1;
        if (::write(ready[1], &byte, 1) == 1) ::pause();
        ::_exit(0);
    }
    char byte = 0;
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    EXPECT_NE(refusal().find("is held by the child"), std::string::npos);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    EXPECT_EQ(refusal(), "");
}

TEST_F(FileLockTest, TheLastHolderIsKnownWhetherItHoldsOrNot) {
    EXPECT_EQ(last_holder(path_), "");
    EXPECT_FALSE(is_held(path_));
    for (const char* holder : {"a longer one\nof two lines", "one"}) {
        const FileLock lock(path_, holder);
        EXPECT_EQ(last_holder(path_), holder);
        EXPECT_TRUE(is_held(path_));
        EXPECT_NE((refusal() + "\n").find(std::string("is held by ").append(holder, strcspn(holder, "\n")) + "\n"),
                  std::string::npos);
    }
    EXPECT_EQ(last_holder(path_), "one");
    EXPECT_FALSE(is_held(path_));
}

TEST_F(FileLockTest, AFolderThatIsNotThereIsAnError) {
    EXPECT_THROW(FileLock("/nowhere/at/all/lock", "x"), Error);
}

}  // namespace
}  // namespace vpp
