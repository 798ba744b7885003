#include "report/step_drawing.hpp"

#include <gtest/gtest.h>

namespace vpp {
namespace {

Settings settings_of(const std::string& schedule, const std::string& chunks = "1") {
    return {{"mesh.pp", "2"},
            {"pipeline.virtual_chunks", chunks},
            {"pipeline.schedule_type", schedule},
            {"pipeline.num_microbatches", "4"}};
}

size_t occurrences(const std::string& text, const std::string& part) {
    size_t count = 0;
    for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
    return count;
}

TEST(StepDrawing, ThePlansScheduleIsSimulated) {
    std::string why;
    const auto picture = picture_of({}, settings_of("1F1B"), why);
    ASSERT_TRUE(picture) << why;
    EXPECT_EQ(picture->actions.size(), 16u);
    EXPECT_NE(picture->caption.find("equally dear"), std::string::npos);
    const std::string text = draw_step(*picture);
    EXPECT_EQ(occurrences(text, "<rect class=\"F k0\""), 8u);
    EXPECT_EQ(occurrences(text, "<rect class=\"B k0\""), 8u);
    EXPECT_NE(text.find("F of stage 1, microbatch 0: 1 to 2"), std::string::npos) << text;
    EXPECT_EQ(text.find(" ms"), std::string::npos) << "units without a clock";
}

TEST(StepDrawing, OnePipelineRunOfSeveralIsSaidToBeOne) {
    Settings settings = settings_of("1F1B");
    std::string why;
    EXPECT_EQ(picture_of({}, settings, why)->caption.find("pipeline run"), std::string::npos);
    settings.emplace_back("train.accumulate", "3");
    EXPECT_NE(picture_of({}, settings, why)->caption.find("; one of the 3 pipeline runs of a step"), std::string::npos);
}

TEST(StepDrawing, LaterStagesOfARankAreDarker) {
    std::string why;
    const auto picture = picture_of({}, settings_of("INTERLEAVED_1F1B", "2"), why);
    ASSERT_TRUE(picture) << why;
    const std::string text = draw_step(*picture);
    EXPECT_EQ(occurrences(text, "class=\"F k0\""), occurrences(text, "class=\"F k1\""));
}

TEST(StepDrawing, WhatCannotBeMadeIsSaid) {
    std::string why;
    EXPECT_FALSE(picture_of({}, settings_of("CUSTOM"), why));
    EXPECT_NE(why.find("CUSTOM"), std::string::npos) << why;
    EXPECT_FALSE(picture_of({}, {}, why));
    EXPECT_NE(why.find("cannot be read"), std::string::npos) << why;
    EXPECT_FALSE(picture_of({}, settings_of("1F1B", "2"), why));
    EXPECT_FALSE(why.empty());
    Settings huge = settings_of("1F1B");
    huge[3].second = "2000000000";
    EXPECT_FALSE(picture_of({}, huge, why));
}

TEST(StepDrawing, AMeasuredStepIsTakenFirst) {
    RecordedRun run;
    run.timeline = {{0, "F", 0, 0, 0, 0.01}, {1, "RECV_F", 1, 0, 0, 0.01}, {1, "F", 1, 0, 0.01, 0.04}};
    std::string why;
    const auto picture = picture_of(run, settings_of("1F1B"), why);
    ASSERT_TRUE(picture);
    EXPECT_EQ(picture->caption, "measured");
    const std::string text = draw_step(*picture);
    EXPECT_EQ(occurrences(text, "class=\"message\""), 1u);
    EXPECT_NE(text.find("F of stage 1, microbatch 0: 10.00 to 40.00 ms"), std::string::npos) << text;
    EXPECT_EQ(busy_shares(run.timeline), (std::map<int, double>{{0, 0.25}, {1, 0.75}}));
    run.timeline = {{1'048'575, "F", 0, 0, 0, 1}};
    EXPECT_EQ(busy_shares(run.timeline).size(), 1u) << "a rank that is not there has no row";
}

TEST(StepDrawing, ManyRanksAreCutOffAndSaid) {
    StepPicture picture;
    for (int rank = 0; rank < 30; ++rank) {
        for (int i = 0; i < 1000; ++i) picture.actions.push_back({rank, "F", rank, i, 1.0 * i, i + 1.0});
    }
    const std::string text = draw_step(picture);
    EXPECT_EQ(occurrences(text, "class=\"idle\""), 20u);
    EXPECT_NE(text.find("10 more ranks are not drawn"), std::string::npos);
}

TEST(StepDrawing, KindsAreText) {
    const std::string text = draw_step({{{0, "<script>\"", 0, 0, 0, 1}}, "", true});
    EXPECT_EQ(text.find("<script"), std::string::npos);
}

}  // namespace
}  // namespace vpp
