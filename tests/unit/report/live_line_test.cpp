#include "report/live_line.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "unit/report/support.hpp"

namespace vpp {
namespace {

StepEvent event_at(int64_t step) {
    StepEvent event = test::sample_step(step);
    event.flops = 263.36e6;
    return event;
}

std::string without_colours(const std::string& text) {
    std::string plain;
    bool in_escape = false;
    for (const char c : text) {
        if (c == '\x1b') in_escape = true;
        if (!in_escape) plain += c;
        if (c == 'm') in_escape = false;
    }
    return plain;
}

TEST(LiveLine, AWideTerminalShowsAll) {
    EXPECT_EQ(live_line(event_at(75), 140, false),
              " 25 %  [=========>                            ]   75/300  loss  3.1416   12.3 K tokens/s   3.2 GFLOP/s  "
              "bubble 21 %  ETA 1 min 20 s");
}

TEST(LiveLine, NarrowOnesShowWhatMattersMost) {
    const StepEvent event = event_at(75);
    EXPECT_EQ(live_line(event, 100, false),
              " 25 %  [=====>              ]   75/300  loss  3.1416   12.3 K tokens/s   3.2 GFLOP/s  ETA 1 min 20 s");
    EXPECT_EQ(live_line(event, 80, false),
              " 25 %  [===>          ]   75/300  loss  3.1416   12.3 K tokens/s  ETA 1 min 20 s");
    EXPECT_EQ(live_line(event, 60, false), " 25 %  [===>        ]   75/300  loss  3.1416  ETA 1 min 20 s");
    EXPECT_EQ(live_line(event, 40, false), " 75/300  loss  3.1416  ETA 1 min 20 s");
    EXPECT_EQ(live_line(event, 24, false), " 75/300  loss  3.1416");
    EXPECT_EQ(live_line(event, 3, false), " 75");
}

TEST(LiveLine, NoWidthIsEverExceeded) {
    StepEvent event = event_at(1);
    event.loss = std::numeric_limits<double>::max();
    event.eta_seconds = 1e9;
    for (const StepEvent& one : {event, event_at(0), event_at(300), event_at(1000)}) {
        for (size_t width = 1; width < 200; ++width) {
            EXPECT_LE(live_line(one, width, false).size(), width);
            EXPECT_LE(without_colours(live_line(one, width, true)).size(), width);
        }
    }
}

TEST(LiveLine, TheColouredBarIsAsLong) {
    const std::string plain = live_line(event_at(75), 140, false), coloured = live_line(event_at(75), 140, true);
    EXPECT_EQ(without_colours(coloured).size(), plain.size());
    EXPECT_NE(coloured.find("\x1b[42m"), std::string::npos);
    EXPECT_EQ(plain.find('\x1b'), std::string::npos);
}

TEST(LiveLine, TheBarIsEmptyAtFirstAndFullAtLast) {
    EXPECT_NE(live_line(event_at(0), 60, false).find("[>           ]"), std::string::npos);
    EXPECT_NE(live_line(event_at(300), 60, false).find("[============]"), std::string::npos);
}

TEST(LiveLine, WhatIsNotKnownIsLeftOut) {
    StepEvent event = test::sample_step(75);
    event.bubble_mean = std::nullopt;
    const std::string line = live_line(event, 140, false);
    EXPECT_EQ(line.find("bubble"), std::string::npos);
    EXPECT_EQ(line.find("FLOP"), std::string::npos);
    event.total_steps = 0;
    EXPECT_NO_THROW(live_line(event, 140, false));
}

}  // namespace
}  // namespace vpp
