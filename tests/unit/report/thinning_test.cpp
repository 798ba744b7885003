#include "report/thinning.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace vpp {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Curve noisy(size_t count) {
    Curve curve;
    for (size_t i = 0; i < count; ++i) curve.add(static_cast<double>(i), static_cast<double>(i * 7919 % 1000));
    return curve;
}

TEST(Thinning, ShortCurvesStayAsTheyAre) {
    const Curve curve = noisy(202);
    EXPECT_EQ(thinned(curve, 100).y, curve.y);
    EXPECT_LT(thinned(noisy(203), 10).size(), 23u);
    EXPECT_EQ(thinned(Curve{}, 10).size(), 0u);
}

TEST(Thinning, ExtremesAndEndsStay) {
    Curve curve = noisy(10'000);
    curve.y[4321] = 1e6;
    curve.y[8765] = -1e6;
    const Curve thin = thinned(curve, 50);
    EXPECT_LE(thin.size(), 102u);
    EXPECT_TRUE(std::is_sorted(thin.x.begin(), thin.x.end()));
    EXPECT_EQ(thin.x.front(), 0);
    EXPECT_EQ(thin.x.back(), 9999);
    EXPECT_EQ(*std::max_element(thin.y.begin(), thin.y.end()), 1e6);
    EXPECT_EQ(*std::min_element(thin.y.begin(), thin.y.end()), -1e6);
}

TEST(Thinning, EveryPointIsOneOfTheCurve) {
    const Curve curve = noisy(10'000), thin = thinned(curve, 50);
    for (size_t i = 0; i < thin.size(); ++i) EXPECT_EQ(thin.y[i], curve.y[static_cast<size_t>(thin.x[i])]);
}

TEST(Thinning, EveryNthPointWouldLoseThePeak) {  // the control
    Curve curve = noisy(10'000);
    curve.y[4321] = 1e6;
    double most = 0;
    for (size_t i = 0; i < curve.size(); i += 100) most = std::max(most, curve.y[i]);
    EXPECT_LT(most, 1e6);
}

TEST(Thinning, GapsStay) {
    Curve curve = noisy(1000);
    curve.y[500] = kNaN;
    const Curve thin = thinned(curve, 10);
    EXPECT_EQ(std::count_if(thin.y.begin(), thin.y.end(), [](double y) { return std::isnan(y); }), 1);
    Curve nothing;
    for (int i = 0; i < 100; ++i) nothing.add(i, kNaN);
    EXPECT_GT(thinned(nothing, 10).size(), 2u);
}

TEST(Thinning, TheMeanIsOfTheLastFiniteOnes) {
    const Curve curve{{1, 2, 3, 4, 5}, {2, 4, kNaN, 6, 8}};
    EXPECT_EQ(moving_mean(curve, 2).y, (std::vector<double>{2, 3, 4, 6, 7}));
    EXPECT_EQ(moving_mean(curve, 1).y[1], 4);
    EXPECT_TRUE(std::isnan(moving_mean(curve, 1).y[2]));
}

TEST(Thinning, AHugeValueIsGoneWithItsWindow) {
    for (const double huge : {1e20, 1.7e308, -1.7e308}) {
        for (const size_t at : {0U, 5U, 6U, 17U}) {
            Curve curve;
            for (size_t i = 0; i < 40; ++i) curve.add(static_cast<double>(i), i == at || i == at + 1 ? huge : 0.5);
            const Curve mean = moving_mean(curve, 7);
            for (size_t i = 0; i < 40; ++i) {
                const bool is_in = i >= at && i <= at + 7;
                EXPECT_EQ(mean.y[i] == 0.5, !is_in) << huge << " at " << at << ": " << i << " is " << mean.y[i];
            }
        }
    }
}

TEST(Thinning, EveryWindowIsSummedAnew) {
    const Curve curve = noisy(101);
    for (const size_t window : {1U, 2U, 7U, 100U, 200U}) {
        const Curve means = moving_mean(curve, window);
        for (size_t i = 0; i < curve.size(); ++i) {
            double sum = 0;
            const size_t first = i + 1 > window ? i + 1 - window : 0;
            for (size_t j = first; j <= i; ++j) sum += curve.y[j];
            EXPECT_EQ(means.y[i], sum / static_cast<double>(i + 1 - first)) << window << ", " << i;
        }
    }
}

TEST(Thinning, ShortCurvesNeedNoMean) {
    EXPECT_EQ(smoothing_window(99), 1u);
    EXPECT_EQ(smoothing_window(100), 2u);
    EXPECT_EQ(smoothing_window(5000), 100u);
}

}  // namespace
}  // namespace vpp
