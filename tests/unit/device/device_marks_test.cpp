#include "device/device_marks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/clock_alignment.hpp"
#include "device/device.hpp"
#include "support/far_device.hpp"

namespace vpp::test {
namespace {

TEST(DeviceMarks, AreOnTheClockOfTheHost) {
    constexpr int64_t kTolerance = 500'000'000;  // what the machine does between a mark's moment and the host's
    start_device(device_beside_cpu());
    DeviceMarks marks(device_beside_cpu());
    std::vector<int64_t> before, behind;
    for (int i = 0; i < 3; ++i) {
        before.push_back(steady_nanoseconds());
        marks.mark();
        behind.push_back(steady_nanoseconds());
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    const std::vector<int64_t> times = marks.take();
    ASSERT_EQ(times.size(), 3U);
    EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
    // A card may come late to the earlier one.
    EXPECT_GE(times[2] - times[1], test_device().is_cuda() ? 0 : 2'000'000) << "a pause lay between them";
    for (size_t i = 0; i < times.size(); ++i) {
        EXPECT_GT(times[i], before[i] - kTolerance);
        EXPECT_LT(times[i], behind[i] + kTolerance);
    }
    EXPECT_TRUE(marks.take().empty()) << "they are forgotten";
}

}  // namespace
}  // namespace vpp::test
