#include "report/page_style.hpp"

#include <gtest/gtest.h>

#include <string>

namespace vpp {
namespace {

TEST(PageStyle, NothingIsLoaded) {
    for (const std::string text : {kPageStyle, kPageScript}) {
        for (const char* bad : {"url(", "@import", "//", "fetch", "XMLHttp", "eval", "innerHTML"}) {
            EXPECT_EQ(text.find(bad), std::string::npos) << bad;
        }
    }
}

TEST(PageStyle, StrictReadersTakeIt) {
    for (const std::string text : {kPageStyle, kPageScript}) {
        for (const char* bad : {"<", "&", "]]>"}) EXPECT_EQ(text.find(bad), std::string::npos) << bad;
    }
}

TEST(PageStyle, ThePaletteIsThereForDarkAndLight) {
    const std::string style = kPageStyle;
    for (int i = 0; i < kNumColours; ++i) {
        const std::string name = "--c" + std::to_string(i) + ":";
        const size_t first = style.find(name);
        ASSERT_NE(first, std::string::npos) << name;
        EXPECT_NE(style.find(name, first + 1), std::string::npos) << name;
    }
}

}  // namespace
}  // namespace vpp
