#include "graph/scripted_module.hpp"

#include <ATen/ops/allclose.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "graph/trial_load.hpp"
#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using namespace test;
using ::testing::ElementsAre;
using Values = NewParameter::Values;

constexpr const char* kLinear = "def forward(self, x):\n    return torch.linear(x, self.weight, self.bias)\n";

ScriptedModule two_layer_script() {
    const ScriptedModule layer{
        "Linear", kLinear, {{"weight", {4, 4}, Values::Uniform, 0.5}, {"bias", {4}, Values::Normal, 2}}};
    ScriptedModule model{"Model",
                         "def forward(self, x):\n    h = torch.dropout(self.a.forward(x), 0.5, self.training)\n"
                         "    return torch.mean(self.b.forward(h) * self.scale + self.shift)\n",
                         {{"scale", {4}, Values::Ones}, {"shift", {4}, Values::Zeros}}};
    model.children = {{"a", layer}, {"b", layer}};
    return model;
}

std::filesystem::path write(const ScriptedModule& module, uint64_t seed) {
    const std::filesystem::path path = save(linear(1, 1));  // a free name
    std::ofstream(path, std::ios::binary | std::ios::trunc) << model_file(module, seed);
    return path;
}

LoadedModel load_file(const std::filesystem::path& path) {
    return load_torchscript(std::make_shared<const Archive>(path), options_for({floats("x", {4})}));
}

at::Tensor weight_of(const LoadedModel& model, const std::string& name) {
    for (size_t i = 0; i < model.graph.parameters.size(); ++i) {
        if (model.graph.parameters[i].name == name) return model.source->weight(static_cast<int>(i));
    }
    throw std::out_of_range(name);
}

TEST(ScriptedModule, PassesTheChecksOfForeignFiles) {
    EXPECT_NO_THROW(trial_load({{write(two_layer_script(), 1), std::nullopt}}, {}));
}

TEST(ScriptedModule, HasTheNamesThatItWasGiven) {
    const Graph graph = load_file(write(two_layer_script(), 1)).graph;
    std::vector<std::string> names;
    for (const GraphParameter& parameter : graph.parameters) names.push_back(parameter.name);
    EXPECT_THAT(names, ElementsAre("scale", "shift", "a.weight", "a.bias", "b.weight", "b.bias"));
    std::vector<std::string> classes;
    for (const GraphModule& module : graph.modules) classes.push_back(module.class_name);
    EXPECT_THAT(classes, ElementsAre("Model", "Linear", "Linear"));
    EXPECT_THAT(graph.warnings, ElementsAre());
}

TEST(ScriptedModule, ValuesAreOfTheKindAskedFor) {
    const LoadedModel model = load_file(write(two_layer_script(), 1));
    const at::Tensor weight = weight_of(model, "a.weight").detach(), bias = weight_of(model, "a.bias").detach();
    EXPECT_LT(weight.abs().max().item<float>(), 0.5F);
    EXPECT_GT(weight.max().item<float>(), 0.1F);
    EXPECT_LT(weight.min().item<float>(), -0.1F);
    EXPECT_GT(bias.abs().max().item<float>(), 0.5F);
    EXPECT_TRUE(at::allclose(weight_of(model, "scale").detach(), at::ones({4})));
    EXPECT_TRUE(at::allclose(weight_of(model, "shift").detach(), at::zeros({4})));
}

TEST(ScriptedModule, ValuesDependOnSeedAndNameAlone) {
    EXPECT_EQ(model_file(two_layer_script(), 1), model_file(two_layer_script(), 1));
    const LoadedModel one = load_file(write(two_layer_script(), 1)), two = load_file(write(two_layer_script(), 2));
    EXPECT_FALSE(weight_of(one, "a.weight").equal(weight_of(two, "a.weight")));
    EXPECT_FALSE(weight_of(one, "a.weight").equal(weight_of(one, "b.weight")));
    ScriptedModule fewer = two_layer_script();
    fewer.code = "def forward(self, x):\n    return torch.mean(self.b.forward(x))\n";
    fewer.parameters.clear();
    fewer.children.erase(fewer.children.begin());
    EXPECT_TRUE(weight_of(load_file(write(fewer, 1)), "b.weight").equal(weight_of(one, "b.weight")));
}

}  // namespace
}  // namespace vpp
