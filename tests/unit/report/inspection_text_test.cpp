#include "report/inspection_text.hpp"

#include <gmock/gmock.h>

#include <regex>
#include <sstream>

#include "unit/report/inspections.hpp"

namespace vpp {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

size_t widest_line(const std::string& text) {
    std::istringstream lines(text);
    size_t widest = 0;
    for (std::string line; std::getline(lines, line);) widest = std::max(widest, line.size());
    return widest;
}

TEST(InspectionText, IsAPage) {
    EXPECT_EQ(inspection_text(test::two_stages(), {100, false}), R"(GOLDEN)");
}

TEST(InspectionText, FitsEveryWidth) {
    for (int width = 60; width <= 140; width += 4) {
        EXPECT_LE(widest_line(inspection_text(test::two_stages(), {width, false})), static_cast<size_t>(width));
    }
}

TEST(InspectionText, ColourRepeatsWhatTheTextSays) {
    const std::string coloured = inspection_text(test::two_stages(), {100, true});
    EXPECT_THAT(coloured, HasSubstr("\x1b[30;48;5;117m 0 \x1b[0m"));
    EXPECT_EQ(std::regex_replace(coloured, std::regex("\x1b\\[[0-9;]*m"), ""),
              inspection_text(test::two_stages(), {100, false}));
}

TEST(InspectionText, ReplicasAndTiesHaveTheirLines) {
    Inspection page = test::two_stages();
    EXPECT_THAT(inspection_text(page, {}), Not(HasSubstr("sent to replicas")));
    page.dp = 2;
    page.ranks[0].ranks = {0, 1};
    page.num_ties = 1;
    page.exact_ties = false;
    page.recompute_text = "1 of 2 segments";
    const std::string text = inspection_text(page, {});
    EXPECT_THAT(text, HasSubstr("sent to replicas a step"));
    EXPECT_THAT(text, HasSubstr("tied      1 copy of parameters in later stages; gradients are summed once per step"));
    EXPECT_THAT(text, HasSubstr("recompute 1 of 2 segments\n"));
}

TEST(InspectionText, ManyRanksGetAListOfThoseThatTalk) {
    Inspection page = test::two_stages();
    for (int rank = 2; rank < 9; ++rank) {
        page.ranks.push_back(page.ranks[1]);
        page.ranks.back().ranks = {rank};
    }
    const std::string text = inspection_text(page, {});
    EXPECT_THAT(text, Not(HasSubstr("sends a step")));
    EXPECT_THAT(text, HasSubstr("rank  sends to  forward a step  backward a step  messages\n"
                                "   0  1               16.0 KiB              0 B         4\n"));
}

TEST(InspectionText, LongTreesAreCutOffAndSaid) {
    Inspection page = test::two_stages();
    page.modules.resize(300, page.modules.back());
    EXPECT_THAT(inspection_text(page, {}), HasSubstr("... 180 more rows"));
}

TEST(StageStrip, StagesAreAsWideAsTheirTime) {
    EXPECT_EQ(stage_strip(test::two_stages(), {43, false}), "|  0 33.3 %   |         1 66.7 %          |\n");
    Inspection page = test::two_stages();
    page.stages.resize(40, page.stages[0]);
    EXPECT_EQ(stage_strip(page, {80, false}), "40 stages\n") << "no room";
}

}  // namespace
}  // namespace vpp
