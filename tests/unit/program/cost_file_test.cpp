#include "program/cost_file.hpp"

#include <gtest/gtest.h>

#include "unit/data/support.hpp"
#include "unit/graph/graphs.hpp"
#include "unit/plan/plan_texts.hpp"

namespace vpp {
namespace {

using test::error_of;
using test::holds;
using test::TemporaryFolder;

std::string cost_file_refusal(const std::string& text) {
    const Error error = error_of([&] { parse_cost_file(text, "c.json"); });
    EXPECT_EQ(error.kind(), ErrorKind::BadData) << error.what();
    return error.what();
}

/// Modules m0 to m3 with 10, 30, 20 and 40 FLOPs.
Graph four_modules() {
    test::GraphMaker maker;
    int value = maker.input("x");
    const double flops[] = {10, 30, 20, 40};
    for (int i = 0; i < 4; ++i) {
        const int w = maker.parameter("w" + std::to_string(i), 4);
        value = maker.op("m" + std::to_string(i), {value, w}, flops[i]);
    }
    maker.modules({"m0:A", "m1:A", "m2:A", "m3:A", "idle:B"});
    return maker.finish();
}

CostModel measured(const std::string& modules, const Graph& graph) {
    Plan plan;
    plan.pipeline.cost_file = "c.json";
    return measured_costs(parse_cost_file("{\"modules\": {" + modules + "}}", "c.json"), graph,
                          estimate_costs(graph, 1), plan);
}

TEST(CostFile, ReadsWhatItSays) {
    const CostFile file = parse_cost_file(
        R"({"unit": "ms", "transfer": 0.5, "transfer_per_mib": 2, "modules":
            {"b": {"F": 1, "I": 2, "W": 3}, "a.x": {"F": 4, "B": 5}}})",
        "c.json");
    EXPECT_EQ(file.unit, "ms");
    EXPECT_EQ(file.transfer, 0.5);
    EXPECT_EQ(file.transfer_per_mib, 2);
    ASSERT_EQ(file.modules.size(), 2U);
    EXPECT_EQ(file.modules[0].module, "a.x");
    EXPECT_EQ(file.modules[0].backward, 5);
    EXPECT_EQ(file.modules[1].weight_gradient, 3);
    EXPECT_EQ(file.digest.size(), 32U);
    EXPECT_NE(file.digest, parse_cost_file(R"({"modules": {"a": {"F": 1, "B": 2}}})", "c.json").digest);
}

TEST(CostFile, WhatIsWrongIsNamed) {
    EXPECT_TRUE(cost_file_refusal("{").starts_with("c.json: ")) << cost_file_refusal("{");
    EXPECT_TRUE(holds(cost_file_refusal(R"({"modules": {"a": {"F": 1, "B": 2}, "a": {"F": 1, "B": 2}}})"),
                      "the key 'a' is there twice"));
    EXPECT_EQ(cost_file_refusal("[]"), "c.json: is no object (expected {...})");
    EXPECT_EQ(cost_file_refusal(R"({"modules": 1})"), "c.json: \"modules\" is no object (expected {...})");
    EXPECT_EQ(cost_file_refusal("{}"), "c.json: has no \"modules\"");
    EXPECT_EQ(cost_file_refusal(R"({"modules": {}})"),
              "c.json: \"modules\" is empty (expected at least one submodule with its times)");
    EXPECT_EQ(cost_file_refusal(R"({"module": {}})"), "c.json: has an unknown key 'module'; did you mean 'modules'?");
    EXPECT_TRUE(holds(cost_file_refusal(R"({"modules": {"a": {"B": 1}}})"), "\"a\" has no F"));
    EXPECT_TRUE(holds(cost_file_refusal(R"({"modules": {"a": {"F": 1}}})"), "\"a\" needs B, or both I and W"));
    EXPECT_TRUE(
        holds(cost_file_refusal(R"({"modules": {"a": {"F": 1, "B": 2, "I": 1}}})"), "needs B, or both I and W"));
    EXPECT_TRUE(holds(cost_file_refusal(R"({"modules": {"a": {"F": "1", "B": 2}}})"), "\"a.F\" is no number"));
    EXPECT_TRUE(
        holds(cost_file_refusal(R"({"modules": {"a": {"F": -1, "B": 2}}})"), "\"a.F\" is no time (expected 0 to 1e9)"));
    EXPECT_TRUE(holds(cost_file_refusal(R"({"modules": {"a": {"F": 1e300, "B": 2}}})"), "is no time"));
    EXPECT_TRUE(holds(cost_file_refusal(R"({"modules": {"a": {"F": 0, "B": 2}}})"), "takes no time at all"));
    EXPECT_TRUE(holds(cost_file_refusal(R"({"modules": {"a": {"F": 1e-10, "B": 2}}})"), "takes next to no time"));
    EXPECT_TRUE(holds(cost_file_refusal(R"({"unit": 1, "modules": {"a": {"F": 1, "B": 2}}})"), "\"unit\" is no text"));
}

TEST(CostFile, OpsShareTheTimesOfTheInnermostSubmodule) {
    const Graph graph = four_modules();
    const CostModel model = measured(R"("": {"F": 8, "B": 16}, "m3": {"F": 100, "I": 70, "W": 50})", graph);
    // m0, m1 and m2 share 8 as 10 : 30 : 20.
    EXPECT_DOUBLE_EQ(model.ops[1].forward, 4);
    EXPECT_DOUBLE_EQ(model.ops[1].backward, 16 * 60 / 110.0) << "I and W of 30 each; m0 has W alone";
    EXPECT_DOUBLE_EQ(model.ops[1].input_gradient, 8 * 60 / 110.0);
    EXPECT_DOUBLE_EQ(model.ops[0].input_gradient, 0);
    EXPECT_DOUBLE_EQ(model.ops[3].forward, 100);
    EXPECT_DOUBLE_EQ(model.ops[3].backward, 120);
    EXPECT_DOUBLE_EQ(model.ops[3].weight_gradient, 50);
}

TEST(CostFile, OtherOpsAreEstimatedAtTheRateOfThoseInside) {
    const CostModel model = measured(R"("m1": {"F": 60, "B": 90})", four_modules());
    EXPECT_DOUBLE_EQ(model.ops[1].forward, 60);
    EXPECT_DOUBLE_EQ(model.ops[2].forward, 40);
    EXPECT_DOUBLE_EQ(model.ops[2].input_gradient, 40);
    EXPECT_TRUE(holds(model.source, "1 of 4 ops")) << model.source;
}

TEST(CostFile, ASubmoduleMustBeTheModels) {
    const Graph graph = four_modules();
    const auto problem = [&](const std::string& modules) {
        const Error error = error_of([&] { measured(modules, graph); });
        EXPECT_EQ(error.kind(), ErrorKind::Plan);
        return std::string(error.what());
    };
    EXPECT_TRUE(holds(problem(R"("n1": {"F": 1, "B": 1})"), "'n1', which the model has not"));
    EXPECT_TRUE(holds(problem(R"("idle": {"F": 1, "B": 1})"), "'idle', which computes nothing of its own"));
}

TEST(CostFile, AMissingFileIsSaid) {
    EXPECT_EQ(error_of([&] { read_cost_file("/nonexistent/costs.json"); }).kind(), ErrorKind::MissingInput);
}

/// What would be measured of four_modules() in two parts.
CostFile two_parts(const Graph& graph) {
    CostFile file;
    file.unit = "ms";
    file.transfer = 0.5;
    file.transfer_per_mib = 2;
    file.model = to_hex(graph.digest);
    file.microbatch_size = 1;
    file.measured = "a machine";
    file.parts = {{{0, 3}, "m0", {6, 11, 5, 7}, 100}, {{3, 4}, "m3", {40, 90, 50, 41}, 200}};
    return file;
}

/// A plan whose microbatches have one sample.
Plan plan_of_one_sample() {
    Plan plan;
    plan.file = "plan.toml";
    plan.mesh.dp = 1;
    plan.train.global_batch_size = 1;
    plan.pipeline.num_microbatches = 1;
    return plan;
}

TEST(CostFile, PartsAreReadBackAsTheyWereWritten) {
    const Graph graph = four_modules();
    const std::string text = to_json_text(two_parts(graph));
    const CostFile file = parse_cost_file(text, "c.json");
    EXPECT_EQ(to_json_text(file), text);
    ASSERT_EQ(file.parts.size(), 2U);
    EXPECT_EQ(file.parts[1].ops.begin, 3);
    EXPECT_EQ(file.parts[1].module, "m3");
    EXPECT_EQ(file.parts[1].times.weight_gradient, 41);
    EXPECT_EQ(file.parts[1].kept_bytes, 200);
    EXPECT_EQ(file.measured, "a machine");
}

TEST(CostFile, OpsShareTheTimesOfTheirPart) {
    const Graph graph = four_modules();
    const CostModel model = measured_costs(parse_cost_file(to_json_text(two_parts(graph)), "c.json"), graph,
                                           estimate_costs(graph, 1), plan_of_one_sample());
    EXPECT_DOUBLE_EQ(model.ops[0].forward, 1) << "10, 30 and 20 FLOPs share 6";
    EXPECT_DOUBLE_EQ(model.ops[1].forward, 3);
    EXPECT_DOUBLE_EQ(model.ops[3].backward, 90);
    EXPECT_DOUBLE_EQ(model.ops[3].input_gradient, 50);
    EXPECT_TRUE(model.is_measured);
    EXPECT_EQ(model.transfer, 0.5);
    EXPECT_TRUE(holds(model.source, "measured in 2 parts")) << model.source;
    EXPECT_EQ(model.warning, "");
    Plan larger = plan_of_one_sample();
    larger.train.global_batch_size = 4;
    const CostModel other = measured_costs(parse_cost_file(to_json_text(two_parts(graph)), "c.json"), graph,
                                           estimate_costs(graph, 1), larger);
    EXPECT_EQ(other.warning,
              "c.json was measured with microbatches of 1 sample instead of 4, whose parts may cost otherwise; measure "
              "again: vpp profile plan.toml --out c.json");
}

TEST(CostFile, PartsOfAnotherModelAreRefused) {
    const Graph graph = four_modules();
    const auto refused = [&](const CostFile& file, const std::string& what) {
        const Error error = error_of([&] {
            measured_costs(parse_cost_file(to_json_text(file), "c.json"), graph, estimate_costs(graph, 1),
                           plan_of_one_sample());
        });
        EXPECT_EQ(error.kind(), ErrorKind::Plan);
        EXPECT_TRUE(holds(error.what(), "c.json " + what)) << error.what();
        EXPECT_TRUE(holds(error.what(), "measure again: vpp profile plan.toml --out c.json")) << error.what();
    };
    CostFile file = two_parts(graph);
    file.parts.pop_back();
    refused(file, "has times of 3 ops, and this plan's model has 4; measure");
    file = two_parts(graph);
    file.model = "0";
    refused(file, "was measured for another model or with other settings of it (digest ");
    Plan plan = plan_of_one_sample();
    plan.file = "my plan.toml";
    plan.settings = {"mesh.pp=2"};
    const Error error = error_of([&] { measured_costs(file, graph, estimate_costs(graph, 1), plan); });
    EXPECT_TRUE(holds(error.what(), "measure again: vpp profile 'my plan.toml' --set mesh.pp=2 --out "))
        << error.what();
}

TEST(CostFile, WhatIsWrongWithPartsIsNamed) {
    const auto refusal = [](const std::string& parts) { return cost_file_refusal("{\"parts\": " + parts + "}"); };
    EXPECT_EQ(refusal("1"), "c.json: \"parts\" is no list (expected [...])");
    EXPECT_EQ(refusal("[]"), "c.json: \"parts\" takes no time at all");
    EXPECT_EQ(refusal(R"([{"ops": [0, 2], "F": 1, "B": 1, "I": 1, "W": 1}, {"ops": [3, 4]}])"),
              "c.json: \"parts[1].ops\" is no run of ops behind the part before it (expected [2, a larger number])");
    for (const char* ops : {"[0, 0]", "[0]", "0", "[0, -1]", "[0, 1.5]", "[0, 99999999999]"}) {
        EXPECT_TRUE(holds(refusal(R"([{"ops": )" + std::string(ops) + "}]"), "\"parts[0].ops\" is no run of ops"))
            << ops;
    }
    EXPECT_EQ(refusal(R"([{"ops": [0, 2], "F": 1, "B": 1, "I": 1}])"), "c.json: \"parts[0]\" has no W");
    EXPECT_EQ(refusal(R"([{"ops": [0, 2], "F": 1, "B": -1, "I": 1, "W": 1}])"),
              "c.json: \"parts[0].B\" is no time (expected 0 to 1e9)");
    EXPECT_EQ(refusal(R"([{"ops": [0, 2], "F": 1, "B": 1, "I": 1, "W": 1, "bytes": -1}])"),
              "c.json: \"parts[0].bytes\" is no whole number from 0");
    EXPECT_EQ(cost_file_refusal(R"({"parts": [], "modules": {}})"),
              "c.json: has \"modules\" and \"parts\" (expected one of them)");
    const std::string whole = to_json_text(two_parts(four_modules()));
    const std::string cut = cost_file_refusal(whole.substr(0, whole.size() / 2));
    EXPECT_TRUE(holds(cut, "c.json: ")) << cut;
}

TEST(CostFile, OneThatCannotBeReadSaysHowToGetAnother) {
    const TemporaryFolder folder;
    folder.write("c.json", "{");
    const std::string said = error_of([&] { read_cost_file(folder.path("c.json")); }).what();
    EXPECT_TRUE(
        said.ends_with("; vpp profile PLAN --out FILE writes a new one, and one in a run folder may be removed"))
        << said;
}

TEST(CostFile, TheRunFoldersFileIsForAutoAlone) {
    const TemporaryFolder folder;
    Plan plan;
    plan.run.dir = folder.path(".");
    plan.pipeline.split_method = "AUTO";
    EXPECT_EQ(cost_file_of(plan), "");
    folder.write(kRunCosts, "{}");
    EXPECT_TRUE(cost_file_of(plan).ends_with("costs.json")) << cost_file_of(plan);
    plan.pipeline.split_method = "FLOPS";
    EXPECT_EQ(cost_file_of(plan), "");
    plan.pipeline.schedule_type = "AUTO";
    EXPECT_TRUE(cost_file_of(plan).ends_with("costs.json"));
    plan.pipeline.cost_file = "own.json";
    EXPECT_EQ(cost_file_of(plan), "own.json");
}

}  // namespace
}  // namespace vpp
