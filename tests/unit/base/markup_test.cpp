#include "base/markup.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace vpp {
namespace {

const std::string kGone = "\xef\xbf\xbd";

TEST(Markup, MarkupIsEscaped) {
    EXPECT_EQ(escaped("a < b & \"c\" > 'd'"), "a &lt; b &amp; &quot;c&quot; &gt; &#39;d&#39;");
    EXPECT_EQ(escaped("</script>"), "&lt;/script&gt;");
}

TEST(Markup, LineEndsTabsAndOtherAlphabetsStay) {
    EXPECT_EQ(escaped("a\n\tb"), "a\n\tb");
    EXPECT_EQ(escaped("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"), "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
}

TEST(Markup, WhatIsNoTextIsReplaced) {
    EXPECT_EQ(escaped(std::string("\0\x1b\r\x7f", 4)), kGone + kGone + kGone + kGone);
    EXPECT_EQ(escaped("\xff"), kGone);
    EXPECT_EQ(escaped("\xc3"), kGone) << "cut short";
    EXPECT_EQ(escaped("\xc3("), kGone + "(");
    EXPECT_EQ(escaped("\xc0\xbc"), kGone + kGone) << "a long form of <";
    EXPECT_EQ(escaped("\xe0\x80\xbc"), kGone + kGone + kGone) << "another";
    EXPECT_EQ(escaped("\xed\xa0\x80"), kGone + kGone + kGone) << "half of a pair";
    EXPECT_EQ(escaped("\xf4\x90\x80\x80"), kGone + kGone + kGone + kGone) << "above the last one";
    EXPECT_EQ(escaped("\xef\xbf\xbe"), kGone) << "no character";
    EXPECT_EQ(escaped("a\xe2\x80\xae"
                      "b"),
              "a" + kGone + "b")
        << "turns the direction";
}

TEST(Markup, CoordinatesAreShort) {
    EXPECT_EQ(coordinate(12), "12");
    EXPECT_EQ(coordinate(0.254), "0.25");
    EXPECT_EQ(coordinate(-0.001), "0");
    EXPECT_EQ(coordinate(100), "100");
    EXPECT_EQ(coordinate(std::numeric_limits<double>::quiet_NaN()), "0");
}

}  // namespace
}  // namespace vpp
