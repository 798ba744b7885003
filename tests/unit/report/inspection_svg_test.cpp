#include "report/inspection_svg.hpp"

#include <gmock/gmock.h>

#include "unit/report/inspections.hpp"

namespace vpp {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

size_t count(const std::string& text, const std::string& part) {
    size_t found = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
}

TEST(InspectionSvg, ShowsStagesEdgesAndTheStep) {
    const std::string text = inspection_svg(test::two_stages());
    for (const char* part : {">stage 0, rank 0<", ">stage 1, rank 1<", ">66.7 % of the time<",
                             ">blocks.0..1  Block x 2<", ">4.0 KiB<", "<title>1 value a microbatch</title>",
                             "1F1B: 2 ranks, 2 stages", "<title>1F0 1 - 3</title>", "prefers-color-scheme: dark"}) {
        EXPECT_THAT(text, HasSubstr(part));
    }
}

TEST(InspectionSvg, TheHeavierStageIsWider) {
    const std::string text = inspection_svg(test::two_stages());
    // 1000 wide: two narrowest boxes, one gap and margins leave 640, shared by time.
    EXPECT_THAT(text, HasSubstr("<rect x=\"16.0\" y=\"64.0\" width=\"345.3\""));
    EXPECT_THAT(text, HasSubstr("<rect x=\"425.3\" y=\"64.0\" width=\"558.7\""));
}

TEST(InspectionSvg, SkipsGoOverTheBoxesAndTiesAreDashed) {
    Inspection page = test::two_stages();
    EXPECT_THAT(inspection_svg(page), Not(HasSubstr("stroke-dasharray")));
    page.stages.push_back(page.stages[1]);
    page.edges.push_back({1, "in.weight", "", 0, 2, true, 0, 2048, 8192, false});
    const std::string text = inspection_svg(page);
    EXPECT_THAT(text, HasSubstr("stroke-dasharray"));
    EXPECT_THAT(text, HasSubstr(", tied</title>"));
    EXPECT_THAT(text, HasSubstr(" C")) << "an arc";
}

TEST(InspectionSvg, TagsAreClosedAndNamesEscaped) {
    Inspection page = test::two_stages();
    page.model_files = "<a & \"b\">";
    const std::string text = inspection_svg(page);
    EXPECT_THAT(text, HasSubstr("&lt;a &amp; &quot;b&quot;&gt;"));
    for (const char* tag : {"svg", "text", "title", "style", "defs"}) {
        EXPECT_EQ(count(text, std::string("<") + tag), count(text, std::string("</") + tag + ">")) << tag;
    }
}

}  // namespace
}  // namespace vpp
