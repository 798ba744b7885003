#include "launch/output_backlog.hpp"

#include <gtest/gtest.h>

namespace vpp {
namespace {

/// All that is held, written in pieces of so many bytes.
std::string drain(OutputBacklog& backlog, size_t piece = 7) {
    std::string written;
    while (!backlog.is_empty()) {
        const std::string next(backlog.next().substr(0, piece));
        backlog.take_off(next.size());
        written += next;
    }
    return written;
}

std::string numbered_lines(int first, int last) {
    std::string text;
    for (int i = first; i <= last; ++i) text += "line " + std::to_string(i) + "\n";
    return text;
}

TEST(OutputBacklog, HasEveryByteUpToItsBound) {
    OutputBacklog backlog(1000);
    EXPECT_TRUE(backlog.is_empty());
    backlog.append("one\ntwo");
    EXPECT_FALSE(backlog.is_empty());
    EXPECT_EQ(backlog.next(), "one\ntwo");
    backlog.take_off(2);
    backlog.append("\nthree");
    EXPECT_EQ(drain(backlog), "e\ntwo\nthree");
    EXPECT_TRUE(backlog.is_empty());
}

TEST(OutputBacklog, BeyondItTheOldestLinesGoAndAreCounted) {
    OutputBacklog backlog(1000);
    for (int i = 100; i < 200; ++i) backlog.append(numbered_lines(i, i));  // 9 bytes each; 111 are within the bound
    backlog.append(numbered_lines(200, 220));
    const std::string written = drain(backlog);
    EXPECT_EQ(written, "\nvpp: 66 lines left out here: the terminal stood still\n" + numbered_lines(166, 220));
}

TEST(OutputBacklog, ANoteThatHasNotBegunTellsOfAll) {
    OutputBacklog backlog(1000);
    backlog.append(numbered_lines(100, 299));
    EXPECT_TRUE(backlog.next().starts_with("\nvpp: 145 lines")) << backlog.next();
    backlog.take_off(0);
    backlog.append(numbered_lines(300, 499));
    EXPECT_TRUE(backlog.next().starts_with("\nvpp: 345 lines")) << backlog.next();
    backlog.take_off(5);
    backlog.append(numbered_lines(500, 699));
    EXPECT_EQ(drain(backlog),
              " 345 lines left out here: the terminal stood still\n"
              "\nvpp: 200 lines left out here: the terminal stood still\n" +
                  numbered_lines(645, 699));
}

TEST(OutputBacklog, LiveLinesGoFirst) {
    OutputBacklog backlog(1000);
    std::string last;
    for (int i = 0; i < 1000; ++i) {
        if (i % 100 == 0) backlog.append(numbered_lines(i, i));
        last = "\n\x1b[?7llive " + std::to_string(i) + "\x1b[?7h\r\x1b[A";
        backlog.append(last + (i < 999 ? "\r\x1b[J" : ""));
    }
    const std::string written = drain(backlog);
    EXPECT_EQ(written.find("left out"), std::string::npos);
    for (int i = 0; i < 1000; i += 100) EXPECT_NE(written.find(numbered_lines(i, i)), std::string::npos) << i;
    EXPECT_TRUE(written.ends_with(last));
}

TEST(OutputBacklog, AnEndlessLineIsCutToo) {
    OutputBacklog backlog(1000);
    for (int i = 0; i < 100; ++i) backlog.append(std::string(100, 'x'));
    const std::string written = drain(backlog);
    EXPECT_LT(written.size(), 1100U);
    EXPECT_TRUE(written.starts_with("\nvpp: ")) << written;
}

}  // namespace
}  // namespace vpp
