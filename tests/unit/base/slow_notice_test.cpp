#include "base/slow_notice.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <sstream>
#include <thread>

namespace vpp {
namespace {

TEST(SlowNotice, SaysWhatTakesLongAtDoublingTimes) {
    std::ostringstream out;
    {
        const SlowNotice notice(make_stream_logger(out), "opening the data", 0.02);
        std::this_thread::sleep_for(std::chrono::milliseconds(400));
    }
    const std::string text = out.str(), line = "still opening the data, 0 s so far; does the disk answer?";
    const size_t first = text.find(line);
    ASSERT_NE(first, std::string::npos) << text;
    EXPECT_NE(text.find(line, first + 1), std::string::npos) << "once more";
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 5) << "at doubling times: " << text;
}

TEST(SlowNotice, IsSilentWhereItEndsInTime) {
    std::ostringstream out;
    const auto start = std::chrono::steady_clock::now();
    { const SlowNotice notice(make_stream_logger(out), "opening the data", 600); }
    EXPECT_EQ(out.str(), "");
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60)) << "and holds nobody up";
}

}  // namespace
}  // namespace vpp
