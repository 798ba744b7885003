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
