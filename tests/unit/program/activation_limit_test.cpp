#include "program/activation_limit.hpp"

#include <gtest/gtest.h>

#include "plan/batch_size.hpp"
#include "plan/reader.hpp"
#include "plan/rules.hpp"
#include "schedule/generators.hpp"
#include "unit/graph/graphs.hpp"
#include "unit/plan/plan_texts.hpp"

namespace vpp {
namespace {

using test::error_of;
using test::holds;

constexpr int64_t kKibi = 1024;

Plan plan_with(const std::string& limit) {
    std::vector<std::string> arguments;
    if (!limit.empty()) arguments.push_back("pipeline.memory_limit=" + limit);
    return resolve_plan(parse_plan(test::kShortPlan, "plan.toml", arguments, test::built_names()), 2);
}

/// Stages that keep so many KiB of a microbatch.
ActivationMemory memory_of(const std::vector<int64_t>& kibibytes) {
    Split split;
    for (int64_t size : kibibytes) {
        split.stages.emplace_back();
        SegmentSpec& segment = split.segments.emplace_back();
        segment.stage = split.num_stages() - 1;
        segment.activation_bytes = size * kKibi;
    }
    return {Plan{}, Graph{}, split};
}

/// Two stages with weights of which the second one keeps 2 KiB from F on, and one more with I.
ActivationMemory memory_with_halves() {
    test::GraphMaker maker;
    int value = maker.input("x", {0});
    for (int i = 0; i < 2; ++i) {
        value = maker.op("", {value, maker.parameter("w" + std::to_string(i), 1)}, 1, 256);
        maker.last_op().kept_bytes = kKibi;
    }
    const Graph graph = maker.finish();
    Split split = make_stages(graph, {1});
    for (SegmentSpec& segment : split.segments) segment.working_bytes = 0;
    return {Plan{}, graph, split};
}

TEST(ActivationLimit, ANumberIsTaken) {
    EXPECT_EQ(activation_limit(plan_with("2.5"), memory_of({1, 1}), {2, 1, 4}), 2.5);
    EXPECT_EQ(activation_limit(plan_with(""), memory_of({1, 1}), {2, 1, 4}), std::nullopt);
}

TEST(ActivationLimit, BytesAreThoseOfTheFullestRankInEitherPlacement) {
    // loop: 4 + 2 and 3 + 1; v: 4 + 1 and 3 + 2
    EXPECT_EQ(activation_limit(plan_with("12KiB"), memory_of({4, 3, 2, 1}), {2, 2, 4}), 2);
    // loop: 4 + 1 and 2 + 3; v: 4 + 3 and 2 + 1
    EXPECT_EQ(activation_limit(plan_with("10.5KiB"), memory_of({4, 2, 1, 3}), {2, 2, 4}), 1.5);
    EXPECT_EQ(activation_limit(plan_with("6KiB"), memory_of({4, 2, 1, 3}), {2, 2, 4}), 1) << "the loop has room";
    EXPECT_EQ(activation_limit(plan_with("1KiB"), memory_of({0, 0}), {2, 1, 4}), std::nullopt);
}

TEST(ActivationLimit, LessThanAMicrobatchIsRefused) {
    const Error error = error_of([] { activation_limit(plan_with("4KiB"), memory_of({4, 2, 1, 3}), {2, 2, 4}); });
    EXPECT_EQ(error.kind(), ErrorKind::Plan);
    EXPECT_TRUE(holds(error.what(), "less than the activations of one microbatch")) << error.what();
    EXPECT_TRUE(holds(error.what(), "got 4KiB, expected at least 5KiB")) << error.what();
    EXPECT_TRUE(holds(error.what(), "with 2 stages a rank")) << error.what();
    EXPECT_TRUE(holds(error.what(), "--set:1:23")) << error.what();
}

TEST(ActivationLimit, LessThanAMicrobatchIsSaidOfSchedulesThatDoNotLookAtItToo) {
    const auto no_search = []() -> std::vector<FittingSchedule> {
        ADD_FAILURE() << "nothing fits";
        return {};
    };
    const Schedule schedule = make_schedule("1F1B", 2, 1, 4);
    const Error error = error_of([&] { check_activations(plan_with("2KiB"), schedule, memory_of({1, 3}), no_search); });
    EXPECT_TRUE(holds(error.what(), "less than the activations of one microbatch")) << error.what();
    EXPECT_TRUE(holds(error.what(), "got 2KiB, expected at least 3KiB")) << error.what();
}

TEST(ActivationLimit, ASafeLimitCountsTheLargestStageAndWhatIWorksWith) {
    const ActivationMemory memory = memory_with_halves();  // whole: 2 KiB a microbatch; halves: 2 KiB, and 1 for I
    const auto limit = [&](const char* bytes, bool with_halves) {
        return safe_limit(plan_with(bytes), memory, {2, 1, 4}, with_halves);
    };
    EXPECT_EQ(limit("4KiB", false), 2);
    EXPECT_EQ(limit("4KiB", true), 1);
    EXPECT_EQ(limit("2KiB", true), std::nullopt);
    EXPECT_EQ(limit("2KiB", false), 1);
    EXPECT_EQ(limit("3", true), std::nullopt);
    EXPECT_EQ(limit("", true), std::nullopt);
    EXPECT_EQ(safe_limit(plan_with("12KiB"), memory_of({4, 3, 2, 1}), {2, 2, 4}, false), 1.5) << "three of the first";
}

TEST(ActivationLimit, OneMicrobatchAtATimeHoldsWhatOneTakes) {
    const Schedule schedule = one_at_a_time(2, {0, 1, 1, 0}, 3);
    const std::vector<Action> first{{ActionKind::F, 0, 0}, {ActionKind::F, 3, 0}, {ActionKind::B, 3, 0}};
    EXPECT_TRUE(std::equal(first.begin(), first.end(), schedule.actions[0].begin()));
    EXPECT_EQ(schedule.actions[0].size(), 12U);
    EXPECT_EQ(memory_of({4, 2, 1, 3}).peak_bytes(schedule), 7 * kKibi);
}

TEST(ActivationLimit, GeneratorsGetTheLargestLimitThatHoldsInBytes) {
    const ActivationMemory memory = memory_with_halves();
    std::vector<double> limits;
    const auto make = [&](std::optional<double> limit) {
        limits.push_back(limit.value_or(0));
        return make_schedule("ZERO_BUBBLE_GREEDY", {.size = {2, 1, 8}, .memory_limit = limit});
    };
    const auto within = [&](const char* limit) {
        limits.clear();
        return within_limit(plan_with(limit), memory, {2, 1, 8}, make);
    };
    for (const char* limit : {"3KiB", "4KiB", "5KiB", "7KiB"}) {
        const Schedule made = within(limit);
        EXPECT_TRUE(keeps_to_limit(plan_with(limit), made, memory)) << limit;
        EXPECT_LE(memory.peak_bytes(made), (limit[0] - '0') * kKibi) << limit;
    }
    const Schedule tight = within("2KiB");
    EXPECT_FALSE(keeps_to_limit(plan_with("2KiB"), tight, memory)) << "its I takes three";
    EXPECT_EQ(limits, (std::vector<double>{1, 1}));
    within("2");
    EXPECT_EQ(limits, std::vector<double>{2});
    // Where activations wait for more than the generator knows, as with tied weights, less is asked for.
    const Schedule waits = within_limit(plan_with("4"), memory, {2, 1, 8}, [&](std::optional<double> limit) {
        return make(*limit > 2 ? *limit + 2 : *limit);
    });
    EXPECT_TRUE(keeps_to_limit(plan_with("4"), waits, memory));
    EXPECT_EQ(waits.actions, make(2).actions);
    limits.clear();
    within("");
    EXPECT_EQ(limits, std::vector<double>{0});
}

TEST(ActivationLimit, APeakAboveItIsRefusedWithWhatFits) {
    const ActivationMemory memory = memory_of({1, 3});
    const Schedule all_forwards = make_schedule("GPIPE", 2, 1, 4), one_by_one = make_schedule("1F1B", 2, 1, 4);
    const auto fitting = [] { return std::vector<FittingSchedule>{{"1F1B", 3 * kKibi}, {"AUTO", 2 * kKibi}}; };
    EXPECT_NO_THROW(check_activations(plan_with(""), all_forwards, memory, fitting));
    EXPECT_NO_THROW(check_activations(plan_with("4"), all_forwards, memory, fitting));
    EXPECT_NO_THROW(check_activations(plan_with("2"), one_by_one, memory, fitting));
    const Error error = error_of([&] { check_activations(plan_with("2"), all_forwards, memory, fitting); });
    EXPECT_EQ(error.kind(), ErrorKind::Plan);
    const std::string text = error.what();
    EXPECT_TRUE(holds(text, "GPIPE is above pipeline.memory_limit")) << text;
    EXPECT_TRUE(holds(text, "4.00 microbatches, with the gradients of a backward 12.0 KiB at most")) << text;
    EXPECT_TRUE(holds(text, "these fit: \"1F1B\" (3.0 KiB), \"AUTO\" (2.0 KiB)")) << text;
    EXPECT_TRUE(holds(text, "--set:1:23")) << text;
    const auto none_fits = [&](int64_t samples) {
        Plan plan = plan_with("2");
        plan.train.global_batch_size = samples * parts_of_batch(plan);
        return error_of(
            [&] { check_activations(plan, all_forwards, memory, [] { return std::vector<FittingSchedule>{}; }); });
    };
    const Error none = none_fits(2), smallest = none_fits(1);
    EXPECT_TRUE(holds(none.what(), "with as many stages a rank no schedule fits")) << none.what();
    EXPECT_TRUE(holds(none.what(), "which makes microbatches smaller")) << none.what();
    EXPECT_TRUE(holds(smallest.what(), "microbatches have one sample already; try more stages")) << smallest.what();
    const Error untold = error_of([&] { check_activations(plan_with("2"), all_forwards, memory, {}); });
    EXPECT_FALSE(holds(untold.what(), "fit")) << untold.what();
}

TEST(ActivationLimit, BytesAreComparedRankByRank) {
    // 1F1B keeps two microbatches of 2 KiB on rank 0 and one of 3 KiB on rank 1.
    const ActivationMemory memory = memory_of({2, 3});
    const Schedule schedule = make_schedule("1F1B", 2, 1, 4);
    EXPECT_NO_THROW(check_activations(plan_with("4KiB"), schedule, memory, {}));
    const Error error = error_of([&] { check_activations(plan_with("3KiB"), schedule, memory, {}); });
    EXPECT_TRUE(holds(error.what(), "got 3KiB, expected at least 4KiB")) << error.what();
}

TEST(ActivationLimit, WhatWaitsForWCounts) {
    const ActivationMemory memory = memory_with_halves();
    const Schedule schedule = make_schedule("ZERO_BUBBLE_GREEDY", {.size = {2, 1, 4}, .memory_limit = 1.0});
    EXPECT_EQ(peak_in_flight(schedule), (std::vector<int>{1, 1}));
    const Error error = error_of([&] { check_activations(plan_with("2KiB"), schedule, memory, {}); });
    EXPECT_TRUE(holds(error.what(), "got 2KiB, expected at least 3KiB")) << error.what();
}

}  // namespace
}  // namespace vpp
