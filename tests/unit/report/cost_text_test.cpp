#include "report/cost_text.hpp"

#include <gtest/gtest.h>

#include "unit/plan/plan_texts.hpp"

namespace vpp {
namespace {

using test::holds;

TEST(CostText, ABalanceIsOneLine) {
    EXPECT_EQ(balance_text({{3}, 4.125, 4, 4.5}, "ms"),
              "longest stage 4.125 ms, lower bound 4.000 ms, the next best cut has 4.500 ms");
    EXPECT_EQ(balance_text({{3}, 4, 4, {}}, "ms"),
              "longest stage 4.000 ms, lower bound 4.000 ms, there is no other cut");
}

TEST(CostText, TheTableHasTheCostliestFirstAndAddsUp) {
    std::vector<CostRow> parts = {{"light", 1, 1, 1, 0, 1024},
                                  {"heavy", 2, 2, 1, 1, 2048},
                                  {"light", 1, 1, 0.5, 0.5, 1024},
                                  {"heavy", 3, 3, 2, 1, 0}};
    EXPECT_EQ(cost_table(parts, {80, false}),
              "submodule      F      B      I      W  F + B %     kept\n"
              "heavy      5.000  5.000  3.000  2.000     71.4  2.0 KiB\n"
              "light      2.000  2.000  1.500  0.500     28.6  2.0 KiB\n"
              "all        7.000  7.000  4.500  2.500    100.0  4.0 KiB\n");
    for (int i = 0; i < 20; ++i) parts.push_back({"m" + std::to_string(i), 0.1, 0, 0, 0, 0});
    const std::string text = cost_table(parts, {80, false});
    EXPECT_TRUE(holds(text, "11 others")) << text;
    EXPECT_TRUE(holds(text, "all")) << text;
}

}  // namespace
}  // namespace vpp
