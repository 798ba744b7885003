#include "schedule/timeline.hpp"

#include <sstream>

#include "schedule/generators.hpp"
#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

Schedule lowered(const std::string& name, int ranks, int per_rank, int microbatches) {
    const Schedule compute = make_schedule(name, ranks, per_rank, microbatches);
    return lower(compute, chain_edges(compute.num_stages()));
}

TEST(DrawTimeline, OneFOneB) {
    EXPECT_EQ(draw_timeline(lowered("1F1B", 2, 1, 4)),
              "1F1B: 2 ranks, 2 stages, 4 microbatches\n"
              "0 |F0 F1 .. .. B0 -- F2 B1 -- F3 B2 -- .. B3 --\n"
              "1 |.. F0 B0 -- F1 B1 -- F2 B2 -- F3 B3 -- .. ..\n"
              "F forward  B backward  I, W its halves\n"
              "-- goes on  .. idle  one column = 1.00\n"
              "makespan 15.00, bubble 20.0 %\n"
              "span 15.00, bubble 20.0 %\n"
              "activations in flight: 2 1\n");
}

TEST(DrawTimeline, StagesAreNamedWhenARankHasSeveral) {
    const std::string text = draw_timeline(lowered("INTERLEAVED_1F1B", 2, 2, 2));
    EXPECT_CONTAINS(text, "INTERLEAVED_1F1B: 2 ranks, 4 stages, 2 microbatches\n");
    EXPECT_CONTAINS(text, "0 |0F0 0F1 2F0 2F1 ");
    EXPECT_CONTAINS(text, "1 |... 1F0 1F1 3F0 3B0 --- 3F1 3B1 --- ");
}

TEST(DrawTimeline, LongSchedulesAreCutAndSaySo) {
    const std::string text = draw_timeline(lowered("GPIPE", 12, 1, 30), {}, 60);
    std::istringstream lines(text);
    size_t num_lines = 0, num_cut = 0;
    for (std::string line; std::getline(lines, line); ++num_lines) {
        EXPECT_LE(line.size(), 60U) << line;
        if (line.find('|') != std::string::npos && line.back() == '>') ++num_cut;
    }
    EXPECT_EQ(num_cut, 12U);
    EXPECT_CONTAINS(text, "> the first ");
    EXPECT_CONTAINS(text, " of 123 columns\n");
    EXPECT_CONTAINS(text, " 9 |");
    EXPECT_CONTAINS(text, "11 |");
}

TEST(DrawTimeline, ColoursChangeNothingElse) {
    const Schedule schedule = lowered("INTERLEAVED_1F1B", 2, 2, 4);
    std::string text = draw_timeline(schedule, {}, 80, true);
    EXPECT_CONTAINS(text, "\x1b[30;44m0F0\x1b[0m \x1b[30;44m0F1\x1b[0m");
    EXPECT_CONTAINS(text, "\x1b[30;42m3B0\x1b[0m \x1b[30;42m---\x1b[0m");
    for (size_t at = text.find('\x1b'); at != std::string::npos; at = text.find('\x1b')) {
        text.erase(at, text.find('m', at) + 1 - at);
    }
    EXPECT_EQ(text, draw_timeline(schedule, {}, 80));
}

TEST(DrawTimeline, HalvesOfAPairStandOneBehindTheOther) {
    Schedule pair{"CUSTOM", 1, 2, {0}, {}, false};
    pair.actions = {
        {{ActionKind::F, 0, 0}, {ActionKind::F, 0, 1, -1, -1, true}, {ActionKind::B, 0, 0}, {ActionKind::B, 0, 1}}};
    EXPECT_CONTAINS(draw_timeline(pair), "0 |F0  F1& B0  --- B1  ---\n");
}

TEST(DrawTimeline, AnyWidthWorks) {
    for (int width : {-1, 0, 1, 40, 41, 1000}) {
        EXPECT_CONTAINS(draw_timeline(lowered("1F1B", 4, 1, 8), {}, width), "makespan 33.00");
    }
}

TEST(DrawTimeline, MeasuredCostsAreRoundedToColumns) {
    ScheduleCosts costs;
    costs.stages = {{25, 52, 0, 0}, {24, 49, 0, 0}};
    costs.ticks_per_unit = 10;
    const std::string text = draw_timeline(lowered("GPIPE", 2, 1, 2), costs);
    EXPECT_CONTAINS(text, "one column = 2.40");
    EXPECT_CONTAINS(text, "0 |F0 F1 ");
}

TEST(DrawTimeline, FreeActionsAreNotDrawn) {
    ScheduleCosts costs;
    costs.stages.assign(2, {0, 0, 0, 0});
    EXPECT_CONTAINS(draw_timeline(lowered("GPIPE", 2, 1, 2), costs), "0 |\n1 |\n");
}

TEST(DrawTimeline, OneOfEachReadsAsOne) {
    EXPECT_CONTAINS(draw_timeline(lowered("GPIPE", 1, 1, 1)), "GPIPE: 1 rank, 1 stage, 1 microbatch\n0 |F0 B0 --\n");
}

}  // namespace
}  // namespace vpp
