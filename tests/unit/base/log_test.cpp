#include "base/log.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <iostream>

#include "base/file.hpp"

namespace vpp {
namespace {

namespace fs = std::filesystem;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

std::string logged(const std::string& level, int rank) {
    CaptureStderr();
    const Logger logger = make_logger(level, rank);
    logger->debug("detail");
    logger->info("hello {}");
    logger->warn("careful");
    return GetCapturedStderr();
}

TEST(Log, LinesGoToStderrByLevel) {
    EXPECT_EQ(logged("info", -1), "info: hello {}\nwarning: careful\n");
    EXPECT_EQ(logged("warn", -1), "warning: careful\n");
    EXPECT_EQ(logged("debug", -1), "debug: detail\ninfo: hello {}\nwarning: careful\n");
    EXPECT_EQ(logged("error", -1), "");
    EXPECT_EQ(logged("off", -1), "");
}

TEST(Log, LinesCarryTheRank) {
    EXPECT_EQ(logged("warn", 3), "[rank 3] warning: careful\n");
}

TEST(Log, OthersMakeWayBeforeLinesOfStderr) {
    CaptureStderr();
    const Logger logger = make_logger("info");
    int times = 0;
    logger->before_lines([&times] {
        ++times;
        std::cerr << "way ";
    });
    logger->info("one");
    logger->debug("below the level");
    logger->before_lines({});
    logger->info("two");
    EXPECT_EQ(GetCapturedStderr(), "way info: one\ninfo: two\n");
    EXPECT_EQ(times, 1);
    make_silent_logger()->before_lines([] {});
}

TEST(Log, ASilentLoggerDropsEverything) {
    CaptureStderr();
    make_silent_logger()->error("nothing");
    EXPECT_EQ(GetCapturedStderr(), "");
}

TEST(Log, AFileGetsTheLinesWithTheTime) {
    const fs::path path = fs::temp_directory_path() / ("vpp_log_" + std::to_string(::getpid()) + ".txt");
    const Logger logger = make_silent_logger();
    logger->add_file(path.string());
    logger->info("hello");
    const std::string text = read_text_file(path, 1000);
    EXPECT_NE(text.find(" info: hello\n"), std::string::npos) << text;
    EXPECT_EQ(text[4], '-');
    fs::remove(path);
}

TEST(Log, AFileThatCannotBeOpenedIsSaidAndLeftOut) {
    CaptureStderr();
    const Logger logger = make_logger("info");
    logger->add_file("/dev/null/none/log.txt");
    logger->info("still here");
    const std::string text = GetCapturedStderr();
    EXPECT_NE(text.find("warning: no log file is written"), std::string::npos) << text;
    EXPECT_NE(text.find("info: still here"), std::string::npos) << text;
}

}  // namespace
}  // namespace vpp
