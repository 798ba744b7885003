#include "base/error.hpp"

#include <gtest/gtest.h>

namespace vpp {
namespace {

TEST(Problem, MessageAlone) {
    EXPECT_EQ(to_text(Problem{"it is wrong", std::nullopt}), "it is wrong");
}

TEST(Problem, PositionAndCaret) {
    const Problem problem{"what is wrong", SourcePosition{"plan.toml", 12, 8, "num = 0x"}};
    EXPECT_EQ(to_text(problem),
              "plan.toml:12:8: what is wrong\n"
              "    num = 0x\n"
              "           ^");
}

TEST(Problem, SourceWithoutALine) {
    EXPECT_EQ(to_text(Problem{"wrong", SourcePosition{"--set", 0, 0, ""}}), "--set: wrong");
    EXPECT_EQ(to_text(Problem{"wrong", SourcePosition{"--set", 0, 3, "a=b"}}), "--set: wrong\n    a=b\n      ^");
}

TEST(Problem, ControlBytesOfTheLineAreReplaced) {
    const std::string text = to_text(Problem{"wrong", SourcePosition{"p", 1, 1, "a\x1b[2J\tb"}});
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_NE(text.find("a?[2J?b"), std::string::npos);
}

TEST(Problem, LongLinesAreShownAroundTheColumn) {
    std::string line(5000, 'x');
    line[3000] = 'E';
    const std::string text = to_text(Problem{"wrong", SourcePosition{"p", 1, 3001, line}});
    EXPECT_LT(text.size(), 400U);
    const size_t shown = text.find('\n') + 1, marker = text.find('\n', shown) + 1;
    EXPECT_EQ(text.find('E', shown) - shown, text.find('^') - marker);
}

TEST(Problem, ColumnsOutsideTheLineAreHarmless) {
    for (int column : {-5, 0, 4, 5, 90, 100000, INT32_MAX}) {
        EXPECT_EQ(to_text(Problem{"wrong", SourcePosition{"p", 1, column, "abc"}}).find("p:1:"), 0U) << column;
    }
}

TEST(Error, HoldsKindAndAllProblems) {
    const Error error(ErrorKind::Plan, {{"first", std::nullopt}, {"second", SourcePosition{"p", 2, 1, ""}}});
    EXPECT_EQ(error.kind(), ErrorKind::Plan);
    EXPECT_EQ(error.problems().size(), 2U);
    EXPECT_STREQ(error.what(), "first\np:2:1: second");
}

TEST(Error, CodesAreThoseOfTheManual) {
    EXPECT_EQ(exit_code(ErrorKind::CommandLine), 2);
    EXPECT_EQ(exit_code(ErrorKind::BadData), 65);
    EXPECT_EQ(exit_code(ErrorKind::MissingInput), 66);
    EXPECT_EQ(exit_code(ErrorKind::Mesh), 69);
    EXPECT_EQ(exit_code(ErrorKind::Bug), 70);
    EXPECT_EQ(exit_code(ErrorKind::OutOfMemory), 71);
    EXPECT_EQ(exit_code(ErrorKind::Output), 73);
    EXPECT_EQ(exit_code(ErrorKind::Io), 74);
    EXPECT_EQ(exit_code(ErrorKind::RankLost), 75);
    EXPECT_EQ(exit_code(ErrorKind::RanksDisagree), 76);
    EXPECT_EQ(exit_code(ErrorKind::Refused), 77);
    EXPECT_EQ(exit_code(ErrorKind::Plan), 78);
    EXPECT_EQ(exit_code(ErrorKind::NotFinite), 79);
    EXPECT_EQ(exit_code(ErrorKind::VerifyDifference), 80);
    EXPECT_EQ(exit_code(ErrorKind::Stopped), 85);
    EXPECT_EQ(exit_code(ErrorKind::Interrupted), 130);
}

TEST(Printable, ReplacesControlBytesOnly) {
    EXPECT_EQ(printable("plain text, 100 %"), "plain text, 100 %");
    EXPECT_EQ(printable(std::string_view("\0\x1f\x7f\n", 4)), "????");
    EXPECT_EQ(printable("\xc2\x9b"
                        "31m, \xc2\xa0, \xc2"),
              "??31m, \xc2\xa0, \xc2");
    EXPECT_EQ(printable("gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f");
}

TEST(Check, ABrokenInvariantNamesItsPlace) {
    EXPECT_NO_THROW(check(true, "fine"));
    try {
        check(false, "two is odd");
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::Bug);
        const std::string text = error.what();
        EXPECT_NE(text.find("this is a bug in vpp: two is odd"), std::string::npos);
        EXPECT_NE(text.find("error_test.cpp"), std::string::npos);
    }
}

}  // namespace
}  // namespace vpp
