#include "examples/digit_images.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

namespace vpp {
namespace {

TEST(DigitImages, HaveAllDigitsAtEveryPlaceAndInkWhereTheGlyphIs) {
    const DigitImages digits = draw_digits(400, 1);
    ASSERT_EQ(digits.count(), 400);
    ASSERT_EQ(digits.pixels.size(), 400U * 64);
    EXPECT_EQ(std::set<int64_t>(digits.labels.begin(), digits.labels.end()).size(), 10U);
    for (int64_t picture = 0; picture < digits.count(); ++picture) {
        int ink = 0;
        for (int64_t i = 0; i < 64; ++i) ink += digits.pixels[static_cast<size_t>(picture * 64 + i)] > 0.75F ? 1 : 0;
        EXPECT_GE(ink, 7) << "the seven is the thinnest";
        EXPECT_LE(ink, 13) << "the eight is the fattest";
    }
}

TEST(DigitImages, ValuesHaveMeanNearZero) {
    const DigitImages digits = draw_digits(400, 1);
    const double sum = std::accumulate(digits.pixels.begin(), digits.pixels.end(), 0.0);
    EXPECT_NEAR(sum / static_cast<double>(digits.pixels.size()), 0, 0.2);
}

TEST(DigitImages, APureFunctionOfTheSeed) {
    EXPECT_EQ(draw_digits(20, 1).pixels, draw_digits(20, 1).pixels);
    EXPECT_NE(draw_digits(20, 1).pixels, draw_digits(20, 2).pixels);
    EXPECT_NE(draw_digits(20, 1).labels, draw_digits(20, 2).labels);
}

TEST(DigitImages, RowsAreThoseOfEachPicture) {
    const DigitImages digits = draw_digits(3, 1);
    const std::vector<float> lower = digits.rows(4, 8);
    ASSERT_EQ(lower.size(), 3U * 32);
    EXPECT_EQ(lower[0], digits.pixels[32]);
    EXPECT_EQ(lower[32], digits.pixels[64 + 32]);
    EXPECT_EQ(lower.back(), digits.pixels.back());
}

}  // namespace
}  // namespace vpp
