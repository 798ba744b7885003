#include "compare/comparison_json.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "unit/compare/runs.hpp"

namespace vpp {
namespace {

nlohmann::json json_of(std::vector<RecordedRun> runs) {
    return nlohmann::json::parse(comparison_json(compare_runs(std::move(runs))));
}

TEST(ComparisonJson, HasSettingsAndResults) {
    RecordedRun two = test::run_with("b", {3, 1, 2}, "0.2");
    two.evaluations = {{2, 1.5, 64, 1}};
    two.notes = {"a note"};
    two.end = RunEnd{0, "3 steps are done"};
    const nlohmann::json json = json_of({test::run_with("a", {3, 2}), two});
    ASSERT_EQ(json.at("runs").size(), 2u);
    const nlohmann::json& run = json["runs"][1];
    EXPECT_EQ(run.at("mark"), "B");
    EXPECT_EQ(run.at("run"), "b");
    EXPECT_EQ(run.at("state"), "finished");
    EXPECT_EQ(run.at("exit_code"), 0);
    EXPECT_EQ(run.at("end"), "3 steps are done");
    EXPECT_TRUE(json["runs"][0].at("exit_code").is_null());
    EXPECT_EQ(run.at("settings"), (nlohmann::json{{"optimizer.lr", "0.2"}}));
    EXPECT_EQ(run.at("step"), 3);
    EXPECT_EQ(run.at("total_steps"), 3);
    EXPECT_EQ(run.at("last_loss"), 2);
    EXPECT_EQ(run.at("best_loss"), 1);
    EXPECT_EQ(run.at("best_loss_step"), 2);
    EXPECT_EQ(run.at("best_validation_loss"), 1.5);
    EXPECT_EQ(run.at("samples_per_second"), 1000);
    EXPECT_EQ(run.at("flops_per_second"), 2e9);
    EXPECT_NEAR(run.at("bubble").get<double>(), 0.24, 1e-12);
    EXPECT_NEAR(run.at("bubble_predicted").get<double>(), 0.2, 1e-12);
    EXPECT_EQ(run.at("memory_bytes"), 300 << 20);
    EXPECT_EQ(run.at("notes"), nlohmann::json::array({"a note"}));
}

TEST(ComparisonJson, WhatIsNotKnownIsNull) {
    const nlohmann::json json = json_of({test::run_with("a", {}), test::run_with("b", {std::nan("")})});
    for (const char* key :
         {"last_loss", "best_loss", "best_loss_step", "best_validation_loss", "best_accuracy", "best_perplexity"}) {
        EXPECT_TRUE(json["runs"][0].at(key).is_null()) << key;
        EXPECT_TRUE(json["runs"][1].at(key).is_null()) << key;
    }
    EXPECT_EQ(json["runs"][0].at("state"), "no step");
}

TEST(ComparisonJson, NamesThatAreNoTextDoNoHarm) {
    RecordedRun run = test::run_with("a", {1});
    run.name = "caf\xe9";
    EXPECT_EQ(json_of({run})["runs"][0].at("run"), "caf\xef\xbf\xbd");
}

}  // namespace
}  // namespace vpp
