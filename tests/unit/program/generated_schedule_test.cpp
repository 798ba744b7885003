#include "program/generated_schedule.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "plan/reader.hpp"
#include "plan/rules.hpp"
#include "schedule/generators.hpp"
#include "unit/plan/plan_texts.hpp"

namespace vpp {
namespace {

Schedule generate(const std::vector<std::string>& overrides, int world) {
    const Plan plan = parse_plan(test::kShortPlan, "plan.toml", overrides, test::built_names());
    return generate_schedule(resolve_plan(plan, world));
}

std::string refusal(const std::vector<std::string>& overrides, int world) {
    try {
        generate(overrides, world);
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::Plan);
        return error.what();
    }
    ADD_FAILURE() << "no error was thrown";
    return "";
}

bool holds(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

TEST(GenerateSchedule, TakesTheNumbersOfThePlan) {
    const Schedule schedule = generate({"pipeline.schedule_type=INTERLEAVED_1F1B", "pipeline.virtual_chunks=3",
                                        "pipeline.num_microbatches=8", "pipeline.interleave_group_size=4"},
                                       2);
    EXPECT_EQ(schedule.num_ranks, 2);
    EXPECT_EQ(schedule.num_stages(), 6);
    EXPECT_EQ(schedule.num_microbatches, 8);
    EXPECT_EQ(schedule.actions, make_schedule("INTERLEAVED_1F1B", {.size = {2, 3, 8}, .interleave_group = 4}).actions);
    EXPECT_NE(schedule.actions, make_schedule("INTERLEAVED_1F1B", 2, 3, 8).actions);
}

TEST(GenerateSchedule, WhatDoesNotFitHasAPosition) {
    const std::string few = refusal({"pipeline.schedule_type=INTERLEAVED_1F1B"}, 2);
    EXPECT_TRUE(holds(few, "try virtual_chunks = 2 or schedule_type = \"1F1B\"")) << few;
    EXPECT_TRUE(holds(few, "--set:1:24: ")) << few;
    const std::string many = refusal({"pipeline.virtual_chunks=2", "pipeline.schedule_type=GPIPE"}, 2);
    EXPECT_TRUE(holds(many, "--set:1:25: ")) << many;
    EXPECT_TRUE(holds(many, "INTERLEAVED_1F1B")) << many;
    const std::string group = refusal({"pipeline.schedule_type=INTERLEAVED_1F1B", "pipeline.virtual_chunks=2",
                                       "pipeline.num_microbatches=8", "pipeline.interleave_group_size=9"},
                                      2);
    EXPECT_TRUE(holds(group, "interleave_group_size")) << group;
}

}  // namespace
}  // namespace vpp
