#include "schedule/svg.hpp"

#include "schedule/generators.hpp"
#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

size_t count(const std::string& text, const std::string& part) {
    size_t found = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
}

Schedule lowered_for_svg(const std::string& name, int ranks, int per_rank, int microbatches) {
    const Schedule compute = make_schedule(name, ranks, per_rank, microbatches);
    return lower(compute, chain_edges(compute.num_stages()));
}

TEST(DrawSvg, EveryActionIsABoxAtItsTime) {
    const std::string text = draw_svg(lowered_for_svg("1F1B", 2, 1, 2));
    EXPECT_EQ(count(text, "<title>"), 8U);
    // Rank 1 starts its first forward after 1, that is 22 pixels right of the labels, in the second row.
    EXPECT_CONTAINS(text, "<rect x=\"92\" y=\"58\" width=\"22\" height=\"24\"");
    EXPECT_CONTAINS(text, "<title>1F0 1 - 2</title>");
    EXPECT_CONTAINS(text, "<title>1B1 5 - 7</title>");
    EXPECT_CONTAINS(text, "1F1B: 2 ranks, 2 stages, 2 microbatches");
    EXPECT_CONTAINS(text, "Makespan 9, span 9");
}

TEST(DrawSvg, TagsAreClosedAndNamesEscaped) {
    Schedule schedule = lowered_for_svg("1F1B", 3, 1, 5);
    schedule.name = "<a & \"b\">\xff";
    const std::string text = draw_svg(schedule);
    EXPECT_CONTAINS(text, "&lt;a &amp; &quot;b&quot;&gt;\xef\xbf\xbd");
    for (const char* tag : {"svg", "text", "title"}) {
        EXPECT_EQ(count(text, std::string("<") + tag), count(text, std::string("</") + tag + ">")) << tag;
    }
    EXPECT_EQ(count(text, "<rect"), count(text, "/>") + count(text, "</rect>"));
}

TEST(DrawSvg, LaterStagesOfARankAreDarker) {
    const std::string text = draw_svg(lowered_for_svg("INTERLEAVED_1F1B", 2, 2, 2));
    EXPECT_EQ(count(text, "hsl(212,70%,62%)"), 4U);
    EXPECT_EQ(count(text, "hsl(212,70%,54%)"), 4U);
}

TEST(DrawSvg, HalvesOfAPairShareTheRow) {
    Schedule pair{"CUSTOM", 1, 2, {0}, {}, false};
    pair.actions = {
        {{ActionKind::F, 0, 0}, {ActionKind::F, 0, 1, -1, -1, true}, {ActionKind::B, 0, 0}, {ActionKind::B, 0, 1}}};
    const std::string text = draw_svg(pair);
    EXPECT_CONTAINS(text, "x=\"92\" y=\"30\" width=\"66\" height=\"12\"");
    EXPECT_CONTAINS(text, "x=\"92\" y=\"42\" width=\"66\" height=\"12\"");
}

TEST(DrawSvg, LongSchedulesStayDrawable) {
    const std::string text = draw_svg(lowered_for_svg("GPIPE", 2, 1, 2000));
    EXPECT_CONTAINS(text, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"20080\"");
}

}  // namespace
}  // namespace vpp
