#include "report/stage_colours.hpp"

#include <gtest/gtest.h>

#include <set>

namespace vpp {
namespace {

TEST(StageColours, EightDifferentOnesThatRepeat) {
    std::set<std::string> web, terminal;
    for (int stage = 0; stage < 8; ++stage) {
        web.insert(stage_colour(stage));
        terminal.insert(painted("x", stage));
    }
    EXPECT_EQ(web.size(), 8U);
    EXPECT_EQ(terminal.size(), 8U);
    EXPECT_EQ(stage_colour(8), stage_colour(0));
}

TEST(StageColours, PaintEndsBehindTheText) {
    EXPECT_EQ(painted("ab", 0), "\x1b[30;48;5;117mab\x1b[0m");
}

}  // namespace
}  // namespace vpp
