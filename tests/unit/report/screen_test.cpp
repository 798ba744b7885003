#include "report/screen.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "unit/report/terminal_image.hpp"

namespace vpp {
namespace {

using Rows = std::vector<std::string>;

/// A screen on a terminal of 20 columns, with a clock that is moved by hand.
class ScreenTest : public testing::Test {
  protected:
    ScreenOptions live() {
        ScreenOptions options;
        options.is_live = true;
        options.clock = [this] { return now_; };
        return options;
    }
    /// What the screen wrote since the last call goes to the terminal.
    Rows seen() {
        image_.write(out_.str());
        out_.str("");
        return image_.rows();
    }
    void pass(int milliseconds) { now_ += std::chrono::milliseconds(milliseconds); }

    std::chrono::steady_clock::time_point now_{std::chrono::hours(1)};
    std::ostringstream out_;
    test::TerminalImage image_{20};
};

TEST_F(ScreenTest, LinesStayAboveTheLiveLine) {
    Screen screen(out_, live());
    screen.print("one");
    screen.show("live 1");
    EXPECT_EQ(seen(), (Rows{"one", "", "live 1"}));
    screen.print("two");
    EXPECT_EQ(seen(), (Rows{"one", "two", "", "live 1"}));
    pass(100);
    screen.show("l 2");
    EXPECT_EQ(seen(), (Rows{"one", "two", "", "l 2"}));
    EXPECT_EQ(image_.row(), 2u);
    EXPECT_EQ(image_.column(), 0u);
    EXPECT_TRUE(image_.wraps());
}

TEST_F(ScreenTest, ATerminalShowsTheSameWithoutOldLiveLines) {
    std::string all;
    {
        Screen screen(out_, live());
        screen.print("one");
        for (int i = 0; i < 50; ++i) {
            pass(100);
            screen.show("live " + std::to_string(i));
            if (i == 20) out_ << "of another rank\n";
            if (i == 40) screen.print("two");
        }
        all = out_.str();
    }
    const std::string kept = without_old_live_lines(all);
    EXPECT_LT(kept.size(), 200u);
    EXPECT_NE(kept.find("of another rank"), std::string::npos);
    EXPECT_TRUE(kept.ends_with(all.substr(all.rfind("\n\x1b")))) << "the one that stands there now";
    test::TerminalImage before{20}, after{20};
    before.write(all);
    after.write(kept);
    EXPECT_EQ(after.rows(), before.rows());
    EXPECT_EQ(after.row(), before.row());
    const std::string plain = "\r\x1b[J\n[?7l\n";
    EXPECT_EQ(without_old_live_lines(plain), plain);
}

TEST_F(ScreenTest, TheEndTakesTheLiveLineOff) {
    {
        Screen screen(out_, live());
        screen.print("one");
        screen.show("live 1");
    }
    EXPECT_EQ(seen(), (Rows{"one"}));
    EXPECT_EQ(image_.row(), 1u);
}

TEST_F(ScreenTest, DrawsAtMostTenTimesASecond) {
    Screen screen(out_, live());
    screen.show("a");
    for (int i = 0; i < 99; ++i) {
        pass(1);
        screen.show("b");
    }
    EXPECT_EQ(seen(), (Rows{"", "a"}));
    pass(1);
    screen.show("c");
    EXPECT_EQ(seen(), (Rows{"", "c"}));
}

TEST_F(ScreenTest, OthersHaveWayForTheirLines) {
    Screen screen(out_, live());
    screen.show("live 1");
    seen();
    screen.make_way();
    image_.write(out_.str() + "info: a\nwarn: b\n");
    out_.str("");
    screen.show("too early");
    EXPECT_EQ(seen(), (Rows{"info: a", "warn: b"}));
    pass(100);
    screen.show("live 2");
    EXPECT_EQ(seen(), (Rows{"info: a", "warn: b", "", "live 2"}));
}

TEST_F(ScreenTest, ALineThatNobodyAnnouncedIsWholeToo) {
    Screen screen(out_, live());
    screen.print("one");
    screen.show("live 1 is long");
    seen();
    image_.write("[rank 1] warn\n");
    pass(100);
    screen.show("live 2");
    EXPECT_EQ(seen(), (Rows{"one", "[rank 1] warn", "", "live 2"}));
}

TEST_F(ScreenTest, ALiveLineAtTheCursorWouldBeTorn) {  // the same with the usual layout, as a control
    image_.write("\rlive 1 is long");
    image_.write("[rank 1] warn\n\r\x1b[Jlive 2");
    EXPECT_EQ(seen().front().rfind("live 1 is long[rank", 0), 0u);
}

TEST_F(ScreenTest, ANarrowTerminalShowsOneRow) {
    Screen screen(out_, live());
    screen.print("one");
    screen.show("0123456789012345678901234567890");
    EXPECT_EQ(seen().size(), 3u);
    screen.print("two");
    EXPECT_EQ(seen().size(), 4u);
}

TEST_F(ScreenTest, WithoutATerminalThereIsNoEscape) {
    {
        Screen screen(out_);
        screen.show("live");
        screen.print("one");
        screen.make_way();
    }
    EXPECT_EQ(out_.str(), "one\n");
}

TEST_F(ScreenTest, AStreamThatFailsStopsNothing) {
    out_.setstate(std::ios::badbit);
    Screen screen(out_, live());
    EXPECT_NO_THROW(screen.print("one"));
    EXPECT_NO_THROW(screen.show("live"));
    EXPECT_NO_THROW(screen.make_way());
}

}  // namespace
}  // namespace vpp
