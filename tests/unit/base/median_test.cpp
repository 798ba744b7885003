#include "base/median.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <string>

namespace vpp {
namespace {

TEST(Median, TheLowerOneOfTwo) {
    EXPECT_EQ(median(std::vector{7}), 7);
    EXPECT_EQ(median(std::deque{9.0, 1.0, 4.0}), 4.0);
    EXPECT_EQ(median(std::vector{9, 1, 4, 100}), 4);
}

TEST(Median, ByWhatIsAskedOfEach) {
    EXPECT_EQ(median(std::vector<std::string>{"long", "", "two"}, &std::string::size), "two");
}

}  // namespace
}  // namespace vpp
