#include "report/inspection_dot.hpp"

#include <gmock/gmock.h>

#include "unit/report/inspections.hpp"

namespace vpp {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(InspectionDot, BoxesOfAStageStandInItsFrame) {
    const std::string text = inspection_dot(test::two_stages());
    EXPECT_THAT(text, HasSubstr("  subgraph cluster_1 {\n"
                                "    label=\"stage 1, rank 1\\n66.7 % of the time, 2.7 KiB of weights\"; "
                                "style=\"rounded,filled\"; color=\"#57606a\"; fillcolor=\"#afd7af\";\n"
                                "    b3 [label=\"blocks.2.down\\nLinear\"];\n"
                                "    b4 [label=\"blocks.2 (itself)\"];\n"
                                "    b5 [label=\"head\\nLinear\"];\n"
                                "  }\n"));
    EXPECT_THAT(text, HasSubstr("b1 [label=\"blocks.0..1\\nBlock x 2\"]"));
}

TEST(InspectionDot, OnlyWhatLeavesAStageHasBytes) {
    const std::string text = inspection_dot(test::two_stages());
    EXPECT_THAT(text, HasSubstr("  b1 -> b2;\n"));
    EXPECT_THAT(text, HasSubstr("  b2 -> b3 [penwidth=2, label=\"4.0 KiB\"];\n"));
}

TEST(InspectionDot, NamesCannotLeaveTheirQuotes) {
    Inspection page = test::two_stages();
    page.modules[1].path = "a\"b\\c\x01";
    const std::string text = inspection_dot(page);
    EXPECT_THAT(text, HasSubstr("label=\"a\\\"b\\\\c?\\nLinear\""));
    EXPECT_THAT(text, Not(HasSubstr("\x01")));
}

}  // namespace
}  // namespace vpp
