#include "program/generated_schedule.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "plan/reader.hpp"
#include "plan/rules.hpp"
#include "schedule/generators.hpp"
#include "unit/graph/models.hpp"
#include "unit/plan/plan_texts.hpp"

namespace vpp {
namespace {

Schedule generate(const std::vector<std::string>& overrides, int world) {
    const Plan plan = parse_plan(test::kShortPlan, "plan.toml", overrides, test::built_names());
    const auto schedule = generate_schedule(resolve_plan(plan, world));
    EXPECT_TRUE(schedule);
    return schedule.value_or(Schedule{});
}

/// A plan that names a schedule which looks at costs.
Plan plan_with_costs(const std::string& name, const std::string& chunks) {
    Names names = test::built_names();
    names.schedules.push_back(name);
    const Plan plan = parse_plan(test::kShortPlan, "plan.toml",
                                 {"pipeline.schedule_type=" + name, "pipeline.virtual_chunks=" + chunks}, names);
    return resolve_plan(plan, 3);
}

std::string reason_against(const std::vector<std::string>& overrides, int world) {
    return test::refusal(ErrorKind::Plan, [&] { generate(overrides, world); });
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

TEST(GenerateSchedule, ThePlanRefusesGroupsWhereTheScheduleHasNone) {
    for (const ScheduleKind& kind : schedule_kinds()) {
        if (!kind.trains) continue;
        Plan plan = parse_plan(test::kShortPlan, "plan.toml", {}, test::built_names());
        plan.pipeline.schedule_type = kind.name;
        plan.pipeline.interleave_group_size = 1000;
        const auto make = [&] {
            make_schedule(kind.name, {.size = {2, kind.fewest_per_rank, 4}, .interleave_group = 1000});
        };
        const bool is_read = test::holds(test::error_of(make).what(), "cannot walk in groups");
        const std::string refusal = test::error_of([&] { check_plan(plan); }).what();
        EXPECT_EQ(test::holds(refusal, "interleave_group_size is for interleaved schedules"), !is_read) << kind.name;
    }
}

TEST(GenerateSchedule, WhatDoesNotFitHasAPosition) {
    const std::string few = reason_against({"pipeline.schedule_type=INTERLEAVED_1F1B"}, 2);
    EXPECT_TRUE(test::holds(few, "try virtual_chunks = 2 or schedule_type = \"1F1B\"")) << few;
    EXPECT_TRUE(test::holds(few, "--set:1:24: ")) << few;
    const std::string many = reason_against({"pipeline.virtual_chunks=2", "pipeline.schedule_type=GPIPE"}, 2);
    EXPECT_TRUE(test::holds(many, "--set:1:25: ")) << many;
    EXPECT_TRUE(test::holds(many, "INTERLEAVED_1F1B")) << many;
    const std::string group = reason_against({"pipeline.schedule_type=INTERLEAVED_1F1B", "pipeline.virtual_chunks=2",
                                              "pipeline.num_microbatches=8", "pipeline.interleave_group_size=9"},
                                             2);
    EXPECT_TRUE(test::holds(group, "interleave_group_size")) << group;
    EXPECT_TRUE(test::holds(group, "--set:1:32: ")) << group;
    const std::string none = reason_against(
        {"pipeline.virtual_chunks=2", "pipeline.schedule_type=DUALPIPE_V", "pipeline.num_microbatches=2"}, 4);
    EXPECT_TRUE(test::holds(none, "--set:1:27: ")) << none;
}

TEST(GenerateSchedule, CostsAndLimitReachTheGenerator) {
    const Plan greedy = plan_with_costs("ZERO_BUBBLE_GREEDY", "1");
    EXPECT_FALSE(generate_schedule(greedy)) << "the plan alone does not decide it";
    const ScheduleSize size{3, 1, 6};
    const ScheduleCosts costs = parse_costs("F=1/1/4,I=1/2/4,W=1/1/3,comm=0.5", size);
    const Schedule limited = generate_schedule(greedy, costs, 2.0);
    EXPECT_EQ(limited.actions,
              make_schedule("ZERO_BUBBLE_GREEDY", {.size = size, .costs = costs, .memory_limit = 2.0}).actions);
    EXPECT_NE(limited.actions, generate_schedule(greedy, {}, 2.0).actions);
    EXPECT_NE(limited.actions, generate_schedule(greedy, costs, std::nullopt).actions);
    const Plan adaptive = plan_with_costs("V_ADAPTIVE", "2");
    const Schedule tight = generate_schedule(adaptive, {}, 1.5);
    for (int peak : peak_in_flight(tight)) EXPECT_LE(peak, 3);
}

TEST(GenerateSchedule, WhatCostsCannotMendIsFoundWithoutThem) {
    EXPECT_FALSE(generate_schedule(plan_with_costs("V_ADAPTIVE", "2")));
    try {
        generate_schedule(plan_with_costs("V_ADAPTIVE", "3"));
        ADD_FAILURE() << "three stages a rank were taken";
    } catch (const Error& error) {
        EXPECT_TRUE(test::holds(error.what(), "virtual_chunks")) << error.what();
    }
}

TEST(GenerateSchedule, OtherPlansHaveNone) {
    for (const char* name : {"AUTO", "CUSTOM"}) {
        Plan plan = plan_with_costs("V_ADAPTIVE", "2");
        plan.pipeline.schedule_type = name;
        EXPECT_FALSE(generate_schedule(plan)) << name;
    }
}

}  // namespace
}  // namespace vpp
