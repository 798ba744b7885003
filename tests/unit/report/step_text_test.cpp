#include "report/step_text.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "unit/report/support.hpp"

namespace vpp {
namespace {

TEST(StepText, FlopsCarryTheirPrefix) {
    StepEvent event = test::sample_step();
    EXPECT_EQ(flops_text(event), "");
    event.flops = 263.36e6;
    EXPECT_EQ(flops_text(event), " 3.2 GFLOP/s");
    event.flops = 10.1e9;
    EXPECT_EQ(flops_text(event), "122.7 GFLOP/s");
    event.flops = 0.823;
    EXPECT_EQ(flops_text(event), "   10 FLOP/s");
    event.step_ms = 0;
    EXPECT_EQ(flops_text(event), "");
}

TEST(StepText, RatesAreOfTokensWhereThereAreTokens) {
    StepEvent event = test::sample_step();
    EXPECT_EQ(rate_text(event), " 12.3 K tokens/s");
    event.tokens_per_second = 0;
    EXPECT_EQ(rate_text(event), "   96.4 samples/s");
}

TEST(StepText, LossesAndSharesAreShort) {
    EXPECT_EQ(loss_text(3.14159), "3.1416");
    EXPECT_EQ(loss_text(-std::numeric_limits<double>::quiet_NaN()), "nan");
    EXPECT_EQ(loss_text(12345678.9), "1.235e+07");
    EXPECT_EQ(whole_percent_text(0.354), "35 %");
}

}  // namespace
}  // namespace vpp
