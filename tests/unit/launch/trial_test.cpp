#include "launch/trial.hpp"

#include <gtest/gtest.h>

namespace vpp {
namespace {

TEST(Trial, MpirunsWordsWithoutRulers) {
    EXPECT_EQ(detail::condense_words("-----\nThere are not enough slots available in the system to satisfy the 4\n"
                                     "slots that were requested by the application:\n\n  true\n----\n"),
              "There are not enough slots available in the system to satisfy the 4 slots that were requested by the "
              "application: true");
    EXPECT_EQ(detail::condense_words(""), "");
    EXPECT_EQ(detail::condense_words("\033[31mred\n"), "?[31mred");
}

TEST(Trial, LongWordsAreCutBetweenWords) {
    std::string text;
    for (int i = 0; i < 200; ++i) text += "word ";
    const std::string cut = detail::condense_words(text);
    EXPECT_LE(cut.size(), 304U);
    EXPECT_TRUE(cut.ends_with("word ...")) << cut;
}

}  // namespace
}  // namespace vpp
