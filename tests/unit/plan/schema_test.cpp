#include "plan/schema.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "unit/plan/plan_texts.hpp"

namespace vpp {
namespace {

using Json = nlohmann::json;

Json schema() {
    return Json::parse(plan_schema(test::built_names()));
}

/// The schema of "pipeline.stage.name", through the tables of lists.
Json key_schema(const Json& root, const std::string& name) {
    const Json* object = &root;
    for (size_t at = 0; at <= name.size();) {
        const size_t dot = std::min(name.find('.', at), name.size());
        if (object->contains("items")) object = &(*object)["items"];
        object = &object->at("properties").at(name.substr(at, dot - at));
        at = dot + 1;
    }
    return *object;
}

TEST(Schema, HasEveryKeyAndForbidsAllOthers) {
    const Json root = schema();
    for (const Key& key : all_keys()) {
        const Json found = key_schema(root, key.name);
        EXPECT_TRUE(found.at("description").get<std::string>().starts_with(key.sentence)) << key.name;
        const std::string section = section_of(key);
        const Json above = key_schema(root, section);
        EXPECT_EQ((above.contains("items") ? above["items"] : above).at("additionalProperties"), false) << section;
    }
    EXPECT_EQ(root.at("additionalProperties"), false);
    EXPECT_EQ(root.at("$schema"), "https://json-schema.org/draft/2020-12/schema");
}

TEST(Schema, TypesWordsAndRanges) {
    const Json root = schema();
    const auto is = [&](const char* name, const char* text) {
        Json found = key_schema(root, name);
        for (const char* prose : {"description", "default", "examples"}) found.erase(prose);
        EXPECT_EQ(found, Json::parse(text)) << name;
    };
    is("data.shuffle", R"({"type": "boolean"})");
    is("mesh.threads", R"({"type": "integer", "minimum": 1, "maximum": 1024})");
    is("lr_schedule.gamma", R"({"type": "number", "exclusiveMinimum": 0})");
    is("optimizer.momentum", R"({"type": "number", "minimum": 0, "exclusiveMaximum": 1})");
    is("optimizer.betas", R"({"type": "array", "minItems": 2, "maxItems": 2,
        "items": {"type": "number", "minimum": 0, "exclusiveMaximum": 1}})");
    is("mesh.device", R"({"type": "string", "enum": ["auto", "cpu"]})");
    is("pipeline.virtual_chunks",
       R"({"anyOf": [{"type": "integer", "minimum": 1, "maximum": 4096}, {"const": "auto"}]})");
    is("data.fields", R"({"type": "object", "additionalProperties": {"type": "string", "minLength": 1}})");
    is("data.train", R"({"anyOf": [{"type": "array", "items": {"type": "string", "minLength": 1}},
        {"type": "object", "additionalProperties": {"type": "string", "minLength": 1}}]})");
    is("pipeline.cost_file", R"({"type": "string"})");
    is("eval.metrics", R"({"type": "array", "items": {"type": "string", "minLength": 1}})");
}

TEST(Schema, WordsComeFromTheRegistriesWithAliasesAndWithoutPlannedOnes) {
    Names names = test::built_names();
    names.schedules.push_back("ZERO_BUBBLE");  // the registry has the aliases, too
    const Json words = key_schema(Json::parse(plan_schema(names)), "pipeline.schedule_type").at("enum");
    for (const char* alias : {"SIMPLE_1F1B", "ZERO_BUBBLE"}) {
        EXPECT_EQ(std::count(words.begin(), words.end(), alias), 1) << alias;
    }
    EXPECT_NE(std::find(words.begin(), words.end(), "V_MIN"), words.end());
    const Json kinds = key_schema(schema(), "data.kind").at("enum");
    EXPECT_EQ(kinds, Json({"tokens", "text", "arrays", "idx", "cifar10", "synthetic"}));
}

TEST(Schema, DefaultsAndExamplesAreValues) {
    const Json root = schema();
    EXPECT_EQ(key_schema(root, "optimizer.betas").at("default"), Json({0.9, 0.999}));
    EXPECT_EQ(key_schema(root, "pipeline.schedule_type").at("default"), "1F1B");
    EXPECT_EQ(key_schema(root, "data.fields").at("examples").at(0).at("label"), "int64[] < 10");
    EXPECT_EQ(key_schema(root, "optimizer.group.match").at("examples"), Json::parse(R"([["*.bias", "*ln*"]])"));
    EXPECT_FALSE(key_schema(root, "pipeline.num_stages").contains("default"));
    EXPECT_EQ(key_schema(root, "pipeline.num_stages").at("description"),
              "Physical stages: ranks on the PP axis. Default: mesh.pp.");
}

TEST(Schema, WhatMustBeWritten) {
    const Json root = schema();
    EXPECT_EQ(root.at("required"), Json({"data"}));
    EXPECT_EQ(key_schema(root, "data").at("required"), Json({"kind"}));
    EXPECT_EQ(key_schema(root, "loss").at("required"), Json({"kind", "target"}));
    EXPECT_EQ(key_schema(root, "pipeline.stage").at("items").at("required"), Json({"name", "inputs", "outputs"}));
    EXPECT_EQ(root.at("if"), Json::parse(R"({"required": ["pipeline"],
        "properties": {"pipeline": {"required": ["stage"]}}})"));
    EXPECT_EQ(root.at("else"), Json::parse(R"({"required": ["model"],
        "properties": {"model": {"required": ["file"]}}})"));
}

}  // namespace
}  // namespace vpp
