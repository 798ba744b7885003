#include "report/inspection_json.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "unit/report/inspections.hpp"

namespace vpp {
namespace {

TEST(InspectionJson, HasEveryPartUnderItsOwnName) {
    const nlohmann::json page = nlohmann::json::parse(inspection_json(test::two_stages()));
    EXPECT_EQ(page["stages"].size(), 2U);
    EXPECT_EQ(page["stages"][0]["weight_bytes"], 9200);
    EXPECT_EQ(page["stages"][1]["modules"], "blocks.2, head");
    EXPECT_EQ(page["ranks"][0]["total_bytes"], 200'000);
    EXPECT_EQ(page["modules"][3]["name"], "0..1");
    EXPECT_EQ(page["modules"][3]["count"], 2);
    EXPECT_EQ(page["links"][1]["backward_bytes"], 16384);
    EXPECT_EQ(page["cuts"][0]["op"], 28);
    EXPECT_EQ(page["flows"].size(), 5U);
    EXPECT_EQ(page["num_microbatches"], 4);
    EXPECT_EQ(page["digest"], "00112233445566778899aabbccddeeff");
}

TEST(InspectionJson, WhatAnEdgeDoesNotHaveIsNull) {
    Inspection inspection = test::two_stages();
    inspection.edges.push_back({1, "2 plain values", "", 0, 1, false, {}, {}, 0, false});
    const nlohmann::json page = nlohmann::json::parse(inspection_json(inspection));
    EXPECT_EQ(page["edges"][0]["bytes"], 4096);
    EXPECT_EQ(page["edges"][0]["gradient_to"], 0);
    EXPECT_TRUE(page["edges"][1]["bytes"].is_null());
    EXPECT_TRUE(page["edges"][1]["gradient_to"].is_null());
}

TEST(InspectionJson, APathThatIsNoUtf8IsTakenWithReplacements) {
    Inspection inspection = test::two_stages();
    inspection.plan_file = "a\xff/plan.toml";
    const nlohmann::json page = nlohmann::json::parse(inspection_json(inspection));
    EXPECT_EQ(page["plan_file"], "a\xef\xbf\xbd/plan.toml");
}

TEST(InspectionJson, AdviceNamesItsRule) {
    const nlohmann::json page = nlohmann::json::parse(inspection_json(test::two_stages()));
    ASSERT_FALSE(page["advice"].empty());
    EXPECT_EQ(page["advice"][0]["rule"], "uneven_ranks");
}

}  // namespace
}  // namespace vpp
