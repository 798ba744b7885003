#include "comm/watchdog.hpp"

#include <gtest/gtest.h>

#include <future>
#include <vector>

namespace vpp {
namespace {

/// A watchdog with a hand-moved clock and no thread.
struct Bench {
    double now_seconds = 100;
    std::vector<std::string> fatal;
    int code = 0;
    Watchdog watchdog{{.on_fatal =
                           [this](const std::string& text, int exit_code) {
                               fatal.push_back(text);
                               code = exit_code;
                           },
                       .now = [this] { return now_seconds; },
                       .period_seconds = 0}};

    void pass(double seconds) {
        for (; seconds > 0; seconds -= 0.25) {
            now_seconds += 0.25;
            watchdog.look();
        }
    }
};

TEST(Watchdog, CallsOnceWhenAPhaseLastsTooLong) {
    Bench bench;
    const auto phase = bench.watchdog.begin("start-up did not finish", 2, 75);
    bench.pass(2);
    EXPECT_TRUE(bench.fatal.empty());
    bench.pass(5);
    EXPECT_EQ(bench.fatal, std::vector<std::string>{"start-up did not finish"});
    EXPECT_EQ(bench.code, 75);
}

TEST(Watchdog, ForgetsAPhaseThatEnded) {
    Bench bench;
    {
        const auto inner = bench.watchdog.begin("inner", 1);
        auto moved = bench.watchdog.begin("moved", 1);
        auto owner = std::move(moved);
        moved.end();
        owner = bench.watchdog.begin("kept", 100);
        bench.pass(0.5);
    }
    bench.pass(200);
    EXPECT_TRUE(bench.fatal.empty());
}

TEST(Watchdog, KeepsPhasesApart) {
    Bench bench;
    const auto longer = bench.watchdog.begin("long", 10);
    const auto shorter = bench.watchdog.begin("short", 1);
    bench.pass(2);
    EXPECT_EQ(bench.fatal, std::vector<std::string>{"short"});
}

// However seldom it looks, that itself is no gap.
TEST(Watchdog, CountsTheTimeBetweenItsLooks) {
    double now_seconds = 0;
    std::vector<std::string> fatal;
    constexpr double kPeriodSeconds = 3600;  // its thread does not come to look
    Watchdog watchdog{{.on_fatal = [&](const std::string& text, int) { fatal.push_back(text); },
                       .now = [&] { return now_seconds; },
                       .period_seconds = kPeriodSeconds}};
    const auto phase = watchdog.begin("phase", 1.5 * kPeriodSeconds);
    for (const size_t expected : {size_t{0}, size_t{1}}) {
        now_seconds += kPeriodSeconds;
        watchdog.look();
        EXPECT_EQ(fatal.size(), expected);
    }
}

TEST(Watchdog, DoesNotCountTimeInWhichTheProcessWasStopped) {
    Bench bench;
    const auto phase = bench.watchdog.begin("phase", 2);
    bench.pass(1);
    bench.now_seconds += 1000;
    bench.pass(0.75);
    EXPECT_TRUE(bench.fatal.empty());
    bench.pass(1);
    EXPECT_EQ(bench.fatal.size(), 1u);
}

TEST(Watchdog, HasAThreadOfItsOwn) {
    std::promise<std::string> said;
    Watchdog watchdog(
        {.on_fatal = [&](const std::string& text, int) { said.set_value(text); }, .now = {}, .period_seconds = 0.001});
    const auto phase = watchdog.begin("stuck", 0.01);
    EXPECT_EQ(said.get_future().get(), "stuck");
}

}  // namespace
}  // namespace vpp
