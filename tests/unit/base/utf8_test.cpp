#include "base/utf8.hpp"

#include <gtest/gtest.h>

namespace vpp {
namespace {

const std::string kReplaced(kReplacement);

TEST(Utf8, CharactersOfEveryLengthAreRead) {
    for (const auto& [text, code] :
         {std::pair{"a", 0x61u}, {"\xc3\xa9", 0xe9u}, {"\xe2\x82\xac", 0x20acu}, {"\xf0\x9f\x98\x80", 0x1f600u}}) {
        const auto character = first_character(std::string(text) + "more");
        ASSERT_TRUE(character) << text;
        EXPECT_EQ(character->code, code);
        EXPECT_EQ(character->length, std::string(text).size());
    }
    EXPECT_FALSE(first_character("\xe2\x82"));
    EXPECT_FALSE(first_character("\x80"));
}

TEST(Utf8, CharactersAreCounted) {
    EXPECT_EQ(num_characters(""), 0u);
    EXPECT_EQ(num_characters("ab"), 2u);
    EXPECT_EQ(num_characters("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"), 4u);
    EXPECT_FALSE(begins_character('\x80'));
    EXPECT_TRUE(begins_character('\xc3'));
}

TEST(Utf8, LongTextsEndBehindAWholeCharacter) {
    EXPECT_EQ(beginning_of("r\xc3\xa9sum", 6), "r\xc3\xa9sum") << "as many bytes as there may be";
    EXPECT_EQ(beginning_of("r\xc3\xa9sum", 5), "r\xc3\xa9su...");
    EXPECT_EQ(beginning_of("r\xc3\xa9sum", 3), "r\xc3\xa9...");
    EXPECT_EQ(beginning_of("r\xc3\xa9sum", 2), "r...");
    EXPECT_EQ(beginning_of("\xa9\xa9\xa9\xa9", 2), "...") << "no character begins there";
}

TEST(Utf8, OtherBytesAreReplacedOneByOne) {
    EXPECT_EQ(as_utf8("r\xc3\xa9sum\xc3\xa9\n"), "r\xc3\xa9sum\xc3\xa9\n");
    EXPECT_EQ(as_utf8("a\xff(\xc3"), "a" + kReplaced + "(" + kReplaced);
    EXPECT_EQ(as_utf8("\xc0\xbc"), kReplaced + kReplaced) << "a long form";
    EXPECT_EQ(as_utf8("\xe0\x80\xbc"), kReplaced + kReplaced + kReplaced) << "another";
    EXPECT_EQ(as_utf8("\xed\xa0\x80"), kReplaced + kReplaced + kReplaced) << "half of a pair";
    EXPECT_EQ(as_utf8("\xf4\x90\x80\x80"), kReplaced + kReplaced + kReplaced + kReplaced) << "above the last one";
    EXPECT_EQ(as_utf8(""), "");
}

}  // namespace
}  // namespace vpp
