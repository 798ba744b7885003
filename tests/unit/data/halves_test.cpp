#include "data/halves.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace vpp::detail {
namespace {

TEST(Halves, Float16) {
    EXPECT_EQ(from_float16(0x3c00), 1);
    EXPECT_EQ(from_float16(0xc000), -2);
    EXPECT_EQ(from_float16(0x3555), 0.333251953125);
    EXPECT_EQ(from_float16(0x7bff), 65504);
    EXPECT_EQ(from_float16(0x0400), 0x1p-14);
    EXPECT_EQ(from_float16(0x03ff), 1023 * 0x1p-24) << "no leading one";
    EXPECT_EQ(from_float16(0x0001), 0x1p-24);
    EXPECT_EQ(from_float16(0), 0);
    EXPECT_TRUE(std::signbit(from_float16(0x8000)));
    EXPECT_EQ(from_float16(0x7c00), INFINITY);
    EXPECT_EQ(from_float16(0xfc00), -INFINITY);
    EXPECT_TRUE(std::isnan(from_float16(0x7e00)));
}

TEST(Halves, Bfloat16) {
    EXPECT_EQ(from_bfloat16(0x3f80), 1);
    EXPECT_EQ(from_bfloat16(0xc049), -3.140625);
    EXPECT_EQ(from_bfloat16(0xff80), -INFINITY);
    EXPECT_TRUE(std::isnan(from_bfloat16(0x7fc0)));
}

}  // namespace
}  // namespace vpp::detail
