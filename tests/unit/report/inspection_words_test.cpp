#include "report/inspection_words.hpp"

#include <gtest/gtest.h>

namespace vpp {
namespace {

TEST(InspectionWords, NumbersThatFollowEachOtherAreARange) {
    EXPECT_EQ(numbers_text({}), "-");
    EXPECT_EQ(numbers_text({3}), "3");
    EXPECT_EQ(numbers_text({0, 1}), "0-1");
    EXPECT_EQ(numbers_text({0, 2, 3, 4, 9}), "0,2-4,9");
}

TEST(InspectionWords, Percents) {
    EXPECT_EQ(percent_text(0.2734), "27.3 %");
}

TEST(InspectionWords, ACriticalPathNamesWhatIsLongest) {
    EXPECT_EQ(critical_path_text({{0.25, 0, 0.5}, 0.25}),
              "critical path: stage 2 50.0 %, stage 0 25.0 %, messages 25.0 %");
    EXPECT_EQ(critical_path_text({{0.1, 0.2, 0.1, 0.2, 0.1, 0.3}, 0}),
              "critical path: stage 5 30.0 %, stage 1 20.0 %, stage 3 20.0 %, 3 stages more 30.0 %, "
              "messages 0.0 %");
}

TEST(InspectionWords, RowsHaveFullNames) {
    InspectedModule row;
    EXPECT_EQ(row_name(row), "model");
    row.name = "2";
    row.path = "blocks.2";
    EXPECT_EQ(row_name(row), "blocks.2");
    row.count = 4;
    row.name = "2..5";
    EXPECT_EQ(row_name(row), "blocks.2..5");
    row.path = "a";
    row.name = "a..d";
    EXPECT_EQ(row_name(row), "a..d");
    row.count = 1;
    row.name = "(itself)";
    EXPECT_EQ(row_name(row), "a (itself)");
}

}  // namespace
}  // namespace vpp
