#include "report/columns.hpp"

#include <gtest/gtest.h>

namespace vpp {
namespace {

const std::vector<Column> kColumns{{"step", 9}, {"loss", 5}, {"rate", 5}, {"ETA", 7}};

TEST(Columns, WhatFitsIsThere) {
    EXPECT_EQ(fitted_line(kColumns, 0), "step  loss  rate  ETA");
    EXPECT_EQ(fitted_line(kColumns, 21), "step  loss  rate  ETA");
}

TEST(Columns, TheLeastWorthGoesFirst) {
    EXPECT_EQ(fitted_line(kColumns, 20), "step  loss  ETA");
    EXPECT_EQ(fitted_line(kColumns, 14), "step  ETA");
    EXPECT_EQ(fitted_line(kColumns, 8), "step");
}

TEST(Columns, TheLastOneIsCutOff) {
    EXPECT_EQ(fitted_line(kColumns, 3), "ste");
    EXPECT_EQ(fitted_line({}, 3), "");
}

TEST(Columns, AlignmentNeverCutsOff) {
    EXPECT_EQ(right_aligned("ab", 4), "  ab");
    EXPECT_EQ(left_aligned("ab", 4), "ab  ");
    EXPECT_EQ(right_aligned("abc", 2), "abc");
    EXPECT_EQ(left_aligned("abc", 2), "abc");
}

}  // namespace
}  // namespace vpp
