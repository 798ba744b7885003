#include "plan/bounds.hpp"

#include <gtest/gtest.h>

namespace vpp {
namespace {

std::string repeated_text(const std::string& text, int times) {
    std::string all;
    for (int i = 0; i < times; ++i) all += text;
    return all;
}

TEST(Bounds, AcceptsPlansAndAnyText) {
    EXPECT_FALSE(check_bounds(""));
    EXPECT_FALSE(check_bounds("a.b = 1\r\n\t# c.d\n[[x]]\ny = [[1], {z = '[['}]\n"));
    EXPECT_FALSE(check_bounds("name = \"gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80\"\n"));
}

TEST(Bounds, DotsAreCountedPerLineOutsideStrings) {
    EXPECT_FALSE(check_bounds(repeated_text("a.", kPlanLimitDots) + "b = 1"));
    const auto problem = check_bounds("x = 1\n" + repeated_text("a.", kPlanLimitDots + 1) + "b = 1");
    ASSERT_TRUE(problem);
    EXPECT_EQ(problem->line, 2);
    EXPECT_EQ(problem->column, 2 * (kPlanLimitDots + 1));
    EXPECT_EQ(problem->message, "too many dots in one line (at most 50)");
    const std::string many = repeated_text("a.", 1000);
    EXPECT_FALSE(check_bounds("x = \"" + many + "\" # " + many));
    EXPECT_FALSE(check_bounds("x = '" + many + "'"));
    EXPECT_FALSE(check_bounds("x = \"\"\"\n" + many + "\"\" \\\"\"\" " + many + "\"\"\"\"\"\n"));
}

// A scanner that loses track of the end of a string would hide the dots behind it.
TEST(Bounds, StringsEndWhereTomlEndsThem) {
    const std::string many = repeated_text("a.", kPlanLimitDots + 1);
    for (const std::string text : {R"("")", R"('')", R"("a\\")", R"("a\"")", R"('a\')", R"("""a""""")", R"("""a\"""")",
                                   R"("""""")", "'''a'''", "''''''", "'''a'''''", "# \"", "\"open"}) {
        const std::string tail = text.starts_with("#") || text.ends_with("open") ? "\n" : " ";
        const std::string closed = text == R"("""a\"""")" ? text + "\"\"" : text;
        EXPECT_TRUE(check_bounds("x = " + closed + tail + many)) << text;
    }
}

TEST(Bounds, NestingIsCounted) {
    EXPECT_FALSE(check_bounds("x = " + repeated_text("[", kPlanLimitNesting) + repeated_text("]", kPlanLimitNesting)));
    EXPECT_EQ(check_bounds("x = " + repeated_text("[", kPlanLimitNesting + 1))->message,
              "brackets are nested too deeply (at most 16)");
    EXPECT_TRUE(check_bounds("x = " + repeated_text("{a=\n", kPlanLimitNesting + 1)));
    EXPECT_FALSE(check_bounds(repeated_text("[a]\n", 1000)));
    EXPECT_FALSE(check_bounds(repeated_text("]", 1000)));
}

TEST(Bounds, SizeIsBounded) {
    const auto problem = check_bounds(std::string(kPlanLimitBytes + 1, ' '));
    ASSERT_TRUE(problem);
    EXPECT_EQ(problem->line, 0);
    EXPECT_EQ(problem->message,
              "the plan is too large (got 1048577 bytes, expected at most 1048576); data and weights belong into files "
              "of their own");
    EXPECT_FALSE(check_bounds(std::string(kPlanLimitBytes, ' ')));
}

TEST(Bounds, OnlyUtf8WithoutControlCharacters) {
    using namespace std::string_literals;
    for (const std::string& bad : {"\xff"s, "\x80"s, "\xc0\xaf"s, "\xe0\x80\xaf"s, "\xed\xa0\x80"s, "\xf4\x90\x80\x80"s,
                                   "\xc3"s, "\xf0\x9f\x98"s, "\0"s, "\x1b"s, "\x7f"s}) {
        const auto problem = check_bounds("a = 1\n#\xc3\xbc " + bad);
        ASSERT_TRUE(problem);
        EXPECT_EQ(problem->line, 2);
        EXPECT_EQ(problem->column, 4);
        const bool is_control = bad[0] >= 0 && bad.size() == 1;
        EXPECT_EQ(problem->message, is_control ? "control characters are not allowed in a plan; remove it"
                                               : "this byte is not UTF-8; save the file as UTF-8");
    }
}

TEST(Bounds, CharactersOutsideAsciiAreQuoted) {
    EXPECT_FALSE(
        check_bounds("\xef\xbb\xbf"
                     "a = 'gr\xc3\xbc\xc3\x9f' # \xc3\xbc\n\"\xc3\xbc\" = 1"));
    EXPECT_FALSE(check_plain_bounds("a=\xc3\xbc \xe2\x80\xa8"));
    EXPECT_TRUE(check_plain_bounds("a=\xc3\xbc \xc3"));
    EXPECT_TRUE(check_plain_bounds("a=\xc3\xbc \x1b"));
    for (const char* text : {"[\xd1\x9e ", "\xc3\xbc = 1", "a = \xc3\xbc", "a = 1\xe2\x80\xa8", " \xef\xbb\xbf"}) {
        const auto problem = check_bounds(text);
        ASSERT_TRUE(problem) << text;
        EXPECT_EQ(problem->message, "characters outside ASCII need quotes around them");
    }
}

}  // namespace
}  // namespace vpp
