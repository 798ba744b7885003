#include "schedule/measured_step.hpp"

#include <nlohmann/json.hpp>

#include <sstream>

#include "unit/schedule/measured_support.hpp"

namespace vpp {
namespace {

using nlohmann::json;
using testing::lowered_schedule;
using testing::measured;

TEST(DrawMeasured, IsToScale) {
    const Schedule lowered = lowered_schedule("1F1B", 2, 1, 4);
    // 15 ms over 45 columns: three columns a millisecond.
    EXPECT_EQ(draw_measured(lowered, measured(lowered), 48),
              "0 |F0-F1-......B0----F2-B1----F3-B2----...B3----\n"
              "1 |...F0-B0----F1-B1----F2-B2----F3-B3----......\n"
              "F forward  B backward  I, W its halves  - goes on  . idle\n"
              "step 12: 15.00 ms, bubble 20.0 %, one column = 0.333 ms\n");
}

/// The same step on cards, to which hosts hand each action out in a microsecond when it begins at the latest.
MeasuredStep on_cards(const Schedule& lowered, MeasuredStep step) {
    for (MeasuredRank& rank : step.ranks) {
        for (size_t i = 0; i < rank.actions.size(); ++i) {
            ActionSpan& span = rank.actions[i];
            if (is_computing(lowered.actions[static_cast<size_t>(rank.pp)][i].kind)) {
                span.device_begin = span.begin + span.wait;
                span.device_end = span.end;
            }
            span = {step.begin(), step.begin() + 1000, 0, 0, span.device_begin, span.device_end};
        }
    }
    return step;
}

TEST(DrawMeasured, CardsAreShownAsTheyComputed) {
    for (const char* name : {"1F1B", "GPIPE", "ZERO_BUBBLE_H1"}) {
        const Schedule lowered = lowered_schedule(name, 2, 1, 4);
        const MeasuredStep step = measured(lowered);
        EXPECT_EQ(draw_measured(lowered, on_cards(lowered, step), 48), draw_measured(lowered, step, 48)) << name;
    }
}

TEST(DrawMeasured, StagesAreNamedWhenARankHasSeveral) {
    const Schedule lowered = lowered_schedule("INTERLEAVED_1F1B", 2, 2, 2);
    EXPECT_CONTAINS(draw_measured(lowered, measured(lowered), 100), "0 |0F0---0F1----2F0---");
}

TEST(DrawMeasured, ARankThatStandsStillShowsIt) {
    const Schedule lowered = lowered_schedule("1F1B", 2, 1, 4);
    MeasuredStep step = measured(lowered);
    for (MeasuredRank& rank : step.ranks) {  // everything behind the third F of rank 1 comes 30 ms later
        for (size_t i = 0; i < rank.actions.size(); ++i) {
            if (rank.actions[i].begin < step.begin() + 8'000'000) continue;
            rank.actions[i].begin += 30'000'000;
            rank.actions[i].end += 30'000'000;
        }
    }
    const std::string text = draw_measured(lowered, step, 48);
    EXPECT_CONTAINS(text, "step 12: 45.00 ms");
    EXPECT_CONTAINS(text, std::string(29, '.'));
}

TEST(DrawMeasured, AnyWidthHoldsAndNoLineIsLonger) {
    const Schedule lowered = lowered_schedule("GPIPE", 12, 1, 30);
    const MeasuredStep step = measured(lowered);
    for (int width : {-5, 0, 41, 77, 500}) {
        std::istringstream lines(draw_measured(lowered, step, width));
        for (std::string line; std::getline(lines, line);) {
            if (line.find('|') == std::string::npos) continue;
            EXPECT_EQ(line.size(), static_cast<size_t>(std::max(width, 40)));
        }
    }
}

TEST(WriteTimeline, WhenACardDidIt) {
    const Schedule lowered = lowered_schedule("1F1B", 2, 1, 2);
    const json written = json::parse(write_timeline(lowered, on_cards(lowered, measured(lowered))));
    EXPECT_EQ(written.at("duration_ms"), 9.0);
    for (const json& action : written.at("actions")) {
        EXPECT_EQ(action.contains("card_end_ms"), action.at("kind").get<std::string>().size() == 1);
    }
    EXPECT_EQ(written.at("actions").at(0).at("card_begin_ms"), 0.0);
    EXPECT_EQ(written.at("actions").at(0).at("card_end_ms"), 1.0);
    EXPECT_LT(written.at("actions").at(0).at("end_ms"), 0.1);
}

TEST(WriteTimeline, EveryActionWithItsTimes) {
    const Schedule lowered = lowered_schedule("1F1B", 2, 1, 2);
    const json written = json::parse(write_timeline(lowered, measured(lowered)));
    EXPECT_EQ(written.at("step"), 12);
    EXPECT_EQ(written.at("schedule"), "1F1B");
    EXPECT_EQ(written.at("num_ranks"), 2);
    EXPECT_EQ(written.at("duration_ms"), 9.0);
    EXPECT_EQ(written.at("actions").size(), lowered.actions[0].size() + lowered.actions[1].size());
    const json& first = written.at("actions").at(0);
    EXPECT_EQ(first, (json{{"rank", 0},
                           {"stage", 0},
                           {"microbatch", 0},
                           {"kind", "F"},
                           {"begin_ms", 0.0},
                           {"end_ms", 1.0},
                           {"wait_ms", 0.0}}));
    double waits = 0;
    for (const json& action : written.at("actions")) {
        EXPECT_LE(action.at("begin_ms"), action.at("end_ms"));
        if (action.at("kind") == "RECV_F" || action.at("kind") == "RECV_B") waits += action.at("wait_ms").get<double>();
    }
    EXPECT_GT(waits, 0);
}

TEST(WriteTimeline, ListsThatDoNotFitAreABug) {
    const Schedule lowered = lowered_schedule("1F1B", 2, 1, 2);
    MeasuredStep step = measured(lowered);
    step.ranks[1].actions.pop_back();
    EXPECT_THROW(write_timeline(lowered, step), Error);
    EXPECT_THROW(draw_measured(lowered, step), Error);
}

}  // namespace
}  // namespace vpp
