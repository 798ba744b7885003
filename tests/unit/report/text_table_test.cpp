#include "report/text_table.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace vpp {
namespace {

TextTable three_columns() {
    TextTable table({{"key", true}, {"number"}, {"what it is", true, 6}}, 1);
    table.add({{"a"}, {"1"}, {"short"}});
    table.add({{"longer"}, {"1000"}, {"a long text here"}});
    return table;
}

TEST(TextTable, NumbersStandRightAndTextsLeft) {
    EXPECT_EQ(three_columns().text({}),
              "key     number  what it is\n"
              "a            1  short\n"
              "longer    1000  a long text here\n");
}

TEST(TextTable, ATextIsCutOffWhereThePageEnds) {
    EXPECT_EQ(three_columns().text({24, false}),
              "key     number  what i..\n"
              "a            1  short\n"
              "longer    1000  a long..\n");
}

TEST(TextTable, TheWidestTextIsCutOffFirst) {
    TextTable table({{"name", true, 4}, {"class", true, 4}, {"number"}}, 1);
    table.add({{"a-rather-long-name"}, {"a-class"}, {"1"}});
    EXPECT_EQ(table.text({24, false}),
              "name     class    number\n"
              "a-rat..  a-class       1\n");
    EXPECT_EQ(table.text({22, false}),
              "name    class   number\n"
              "a-ra..  a-cl..       1\n");
}

TEST(TextTable, ColumnsThatDoNotFitGoIntoAnotherTable) {
    TextTable table({{"key", true}, {"first"}, {"second"}, {"third"}}, 1);
    table.add({{"a"}, {"1"}, {"2"}, {"3"}});
    EXPECT_EQ(table.text({20, false}),
              "key  first  second\n"
              "a        1       2\n"
              "\n"
              "key  third\n"
              "a        3\n");
}

TEST(TextTable, ColourChangesNoWidth) {
    TextTable table({{"stage", true}, {"n"}}, 1);
    table.add({{" 0 ", 0}, {"1"}});
    EXPECT_EQ(table.text({80, true}), "stage  n\n\x1b[30;48;5;117m 0 \x1b[0m    1\n");
    EXPECT_EQ(table.text({80, false}), "stage  n\n 0     1\n");
}

TEST(TextTable, CharactersAreCountedAndStayWhole) {
    const std::string e = "\xc3\xa9", face = "\xf0\x9f\x98\x80";
    TextTable table({{"name", true, 4}, {"n" + e}}, 1);
    table.add({{e + e + "t" + e}, {"1"}});
    EXPECT_EQ(table.text({}), "name  n" + e + "\n" + e + e + "t" + e + "   1\n");
    table.add({{std::string("a") + face + e + std::string(20, 'x')}, {"2"}});
    EXPECT_EQ(table.text({20, false}), "name              n" + e + "\n" + e + e + "t" + e + "               1\n" + "a" +
                                           face + e + std::string(11, 'x') + "..   2\n");
    TextTable narrow({{"k", true, 4}, {"a-number"}, {"b"}}, 1);
    narrow.add({{e + face + e + face + e + face + "xx" + e}, {"1"}, {"2"}});
    EXPECT_EQ(narrow.text({20, false}), "k        a-number  b\n" + e + face + e + face + e + "..         1  2\n");
}

TEST(TextTable, ARowWithoutAllCellsIsABug) {
    TextTable table({{"a"}, {"b"}}, 1);
    EXPECT_THROW(table.add({{"1"}}), Error);
}

TEST(Wrapped, BreaksBetweenWordsAndIndents) {
    EXPECT_EQ(wrapped("- one two three four five six", 22, 2), "- one two three four\n  five six\n");
    EXPECT_EQ(wrapped("a-word-that-is-longer-than-the-page is kept", 20, 0),
              "a-word-that-is-longer-than-the-page\nis kept\n");
}

}  // namespace
}  // namespace vpp
