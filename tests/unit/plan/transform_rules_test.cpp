#include "plan/transform_rules.hpp"

#include <gtest/gtest.h>

#include "plan/reader.hpp"
#include "plan/rules.hpp"
#include "unit/plan/plan_texts.hpp"

namespace vpp {
namespace {

using test::holds;

Plan with_tables(const std::string& tables) {
    return parse_plan(test::kShortPlan + tables, "p.toml", {}, test::built_names());
}

std::string transform_refusal(const std::string& tables) {
    return test::error_of([&] { check_plan(with_tables(tables)); }).what();
}

TEST(TransformRules, TablesAreRead) {
    const Plan plan = with_tables(
        "[[data.transform]]\nfield = 'x'\nresize = [8, 9]\ncrop = [4, 5]\npad = 2\n"
        "flip = 0.5\n[[data.transform]]\nfield = 'y'\nmean = [1, 2.5]\nstd = [2, 4]\n");
    check_plan(plan);
    ASSERT_EQ(plan.data.transforms.size(), 2U);
    EXPECT_EQ(plan.data.transforms[0].resize, (std::vector<int64_t>{8, 9}));
    EXPECT_EQ(plan.data.transforms[0].crop, (std::vector<int64_t>{4, 5}));
    EXPECT_EQ(plan.data.transforms[0].scale, 1);
    EXPECT_EQ(plan.data.transforms[1].mean, (std::vector<double>{1, 2.5}));
    EXPECT_EQ(plan.data.transforms[1].deviation, (std::vector<double>{2, 4}));
    EXPECT_TRUE(holds(plan.resolved_text, "[[data.transform]]\nfield = \"x\"\nresize = [8, 9]\ncrop = [4, 5]\n"));
    EXPECT_EQ(parse_plan(plan.resolved_text, "p.toml", {}, test::built_names()).resolved_text, plan.resolved_text);
}

TEST(TransformRules, TablesThatMeanNothingAreRefused) {
    const std::string table = "[[data.transform]]\nfield = 'x'\n";
    EXPECT_TRUE(holds(transform_refusal(table),
                      "data.transform[0] changes nothing; name resize, crop, flip, scale, or mean and std"));
    EXPECT_TRUE(holds(transform_refusal(table + "mean = [1, 2]\nstd = [1]\n"),
                      "data.transform[0] needs as many numbers of std as of mean (got 1 and 2)"));
    EXPECT_TRUE(holds(transform_refusal(table + "std = [1]\n"), "(got 1 and 0); mean = [0.0] and std = [1.0]"));
    EXPECT_TRUE(holds(transform_refusal(table + "flip = 1\npad = 2\n"),
                      "data.transform[0].pad needs crop: it is what a crop may take in"));
    EXPECT_TRUE(holds(transform_refusal(table + "flip = 1\n" + table + "flip = 0.5\n"),
                      "data.transform[1].field names 'x' again; write one table for a field"));
    for (const char* number : {"0", "1e-60", "1e39"}) {
        EXPECT_TRUE(holds(transform_refusal(table + "mean = [1, 1]\nstd = [1, " + number + "]\n"),
                          "p.toml:10:11: data.transform[0].std is out of range"))
            << number;
    }
    for (const char* number : {"-1e39", "1e300"}) {
        EXPECT_TRUE(holds(transform_refusal(table + "std = [1]\nmean = [" + number + "]\n"),
                          "data.transform[0].mean is out of range"))
            << number;
    }
}

TEST(TransformRules, AScaleIsAFloat) {
    const std::string scale = "[[data.transform]]\nfield = 'x'\nscale = ";
    for (const char* number : {"1e300", "-1e39", "inf", "nan"}) {
        const std::string text = transform_refusal(scale + number + "\n");
        EXPECT_TRUE(holds(text, "data.transform[0].scale is out of range (got ")) << text;
        EXPECT_TRUE(holds(text, "expected -3.4e+38 to 3.4e+38); not between -1e-37 and 1e-37")) << text;
    }
    for (const char* number : {"0.0", "1e-300", "-1e-38"}) {
        EXPECT_TRUE(holds(transform_refusal(scale + number + "\n"),
                          "p.toml:9:9: data.transform[0].scale is out of range (got " + std::string(number) +
                              ", expected at least 1e-37, or at most -1e-37)"))
            << number;
    }
    for (const char* number : {"1e-37", "-1", "255"}) {
        EXPECT_NO_THROW(check_plan(with_tables(scale + number + "\n"))) << number;
    }
}

}  // namespace
}  // namespace vpp
