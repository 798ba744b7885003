#include "program/activation_limit.hpp"

#include <gtest/gtest.h>

#include "plan/reader.hpp"
#include "plan/rules.hpp"
#include "schedule/generators.hpp"
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
Split split_of(const std::vector<int64_t>& kibibytes) {
    Split split;
    for (int64_t size : kibibytes) split.stages.emplace_back().activation_bytes = size * kKibi;
    return split;
}

TEST(ActivationLimit, ANumberIsTaken) {
    EXPECT_EQ(activation_limit(plan_with("2.5"), split_of({1, 1}), {2, 1, 4}), 2.5);
    EXPECT_EQ(activation_limit(plan_with(""), split_of({1, 1}), {2, 1, 4}), std::nullopt);
}

TEST(ActivationLimit, BytesAreThoseOfTheFullestRankInEitherPlacement) {
    // loop: 4 + 2 and 3 + 1; v: 4 + 1 and 3 + 2
    EXPECT_EQ(activation_limit(plan_with("12KiB"), split_of({4, 3, 2, 1}), {2, 2, 4}), 2);
    // loop: 4 + 1 and 2 + 3; v: 4 + 3 and 2 + 1
    EXPECT_EQ(activation_limit(plan_with("10.5KiB"), split_of({4, 2, 1, 3}), {2, 2, 4}), 1.5);
    EXPECT_EQ(activation_limit(plan_with("1KiB"), split_of({0, 0}), {2, 1, 4}), std::nullopt);
}

TEST(ActivationLimit, LessThanAMicrobatchIsRefused) {
    const Error error = error_of([] { activation_limit(plan_with("6KiB"), split_of({4, 2, 1, 3}), {2, 2, 4}); });
    EXPECT_EQ(error.kind(), ErrorKind::Plan);
    EXPECT_TRUE(holds(error.what(), "got 6KiB, expected at least 7KiB")) << error.what();
    EXPECT_TRUE(holds(error.what(), "--set:1:23")) << error.what();
}

TEST(ActivationLimit, APeakAboveItIsRefusedWithWhatFits) {
    const Split split = split_of({1, 3});
    const Schedule all_forwards = make_schedule("GPIPE", 2, 1, 4), one_by_one = make_schedule("1F1B", 2, 1, 4);
    EXPECT_NO_THROW(check_activations(plan_with(""), all_forwards, split, {}));
    EXPECT_NO_THROW(check_activations(plan_with("4"), all_forwards, split, {}));
    EXPECT_NO_THROW(check_activations(plan_with("2"), one_by_one, split, {}));
    const Error error = error_of([&] { check_activations(plan_with("2"), all_forwards, split, {}); });
    EXPECT_EQ(error.kind(), ErrorKind::Plan);
    const std::string text = error.what();
    EXPECT_TRUE(holds(text, "GPIPE is above pipeline.memory_limit")) << text;
    EXPECT_TRUE(holds(text, "4.00 microbatches")) << text;
    EXPECT_TRUE(holds(text, "these fit: \"1F1B\", ")) << text;
    EXPECT_TRUE(holds(text, "\"AUTO\"")) << text;
    EXPECT_FALSE(holds(text, "\"GPIPE\"")) << text;
    EXPECT_TRUE(holds(text, "--set:1:23")) << text;
}

TEST(ActivationLimit, BytesAreComparedRankByRank) {
    // 1F1B keeps two microbatches of 1 KiB on rank 0 and one of 3 KiB on rank 1.
    const Split split = split_of({1, 3});
    const Schedule schedule = make_schedule("1F1B", 2, 1, 4);
    EXPECT_NO_THROW(check_activations(plan_with("3KiB"), schedule, split, {}));
    const Error error = error_of([&] { check_activations(plan_with("2KiB"), schedule, split, {}); });
    EXPECT_TRUE(holds(error.what(), "got 2KiB, expected at least 3KiB")) << error.what();
}

}  // namespace
}  // namespace vpp
