#include "graph/initial_values.hpp"

#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using namespace test;
using ::testing::HasSubstr;

InitRule rule(std::vector<std::string> match, const std::string& kind = "normal") {
    return {std::move(match), kind};
}

/// A parameter without data: every element is the one that is stored.
at::Tensor weightless(const std::vector<int64_t>& shape) {
    return weight({1}).detach().expand(shape).set_requires_grad(true);
}

ModuleSpec half_weightless() {
    ModuleSpec model{"Model", "def forward(self, x):\n    return torch.mean(self.b.forward(self.a.forward(x)))\n"};
    model.children = {{"a", linear(4, 4, 1)}, {"b", linear(4, 4, 2)}};
    for (auto& [name, tensor] : model.children[1].second.parameters) tensor = weightless(tensor.sizes().vec());
    return model;
}

int parameter(const Graph& graph, const std::string& name) {
    return static_cast<int>(&parameter_of(graph, name) - graph.parameters.data());
}

TEST(InitialValues, OnlyAllStridesOfZeroMeanNoData) {
    EXPECT_FALSE(has_data(weightless({3, 2}), false));
    EXPECT_TRUE(has_data(weightless({3, 2}), true)) << "a buffer";
    EXPECT_TRUE(has_data(weight({3, 2}), false));
    EXPECT_TRUE(has_data(weight({1, 1}).as_strided({1, 1}, {0, 0}), false)) << "its one element is there";
    EXPECT_TRUE(has_data(weight({1, 2}).expand({3, 2}), false)) << "rows that are alike are values";
}

TEST(InitialValues, ABufferKeepsWhatItRepeats) {
    ModuleSpec model{"Model",
                     "def forward(self, x):\n    return torch.mean(x * self.w * self.one) + self.rows.sum()\n"};
    model.parameters = {{"w", weight({4})}};
    model.buffers = {{"one", values({1}).expand({4})}, {"rows", values({1, 300}).expand({70, 300})}};
    const Inputs inputs{{"x", values({2, 4})}};
    load_exactly(model, options_for({floats("x", {4})}), inputs);
    LoadedModel loaded = load(model, options_for({floats("x", {4})}));
    EXPECT_NO_THROW(check_have_values(Plan(), loaded.graph));
    const auto value = [&](const char* name) { return loaded.source->weight(parameter(loaded.graph, name)); };
    EXPECT_EQ(bits_of(value("one")), bits_of(values({1}).expand({4})));
    EXPECT_EQ(value("one").strides(), at::IntArrayRef{0});
    EXPECT_EQ(value("rows").strides(), (at::IntArrayRef{0, 1}));
}

TEST(InitialValues, ABufferThatRepeatsIsNotWrittenInPlace) {
    ModuleSpec model{"Model",
                     "def forward(self, x):\n    self.one += 1\n    return torch.mean(x * self.w * self.one)\n"};
    model.parameters = {{"w", weight({4})}};
    model.buffers = {{"one", values({1}).expand({4})}};
    EXPECT_THAT(refusal(ErrorKind::BadData, [&] { load(model, options_for({floats("x", {4})})); }),
                HasSubstr("more than one element of the written-to tensor refers to a single memory location"));
}

TEST(InitialValues, TheFirstRuleThatMatchesAnyNameCounts) {
    const std::vector<InitRule> rules{rule({"a.*", "head.*"}, "zeros"), rule({"*"}, "ones")};
    EXPECT_EQ(rule_for(rules, "a.weight", {}), &rules[0]);
    EXPECT_EQ(rule_for(rules, "embedding.weight", {"head.weight"}), &rules[0]);
    EXPECT_EQ(rule_for(rules, "b.weight", {}), &rules[1]);
    EXPECT_EQ(rule_for({rules[0]}, "b.weight", {}), nullptr);
}

// torch.empty(2, 3).normal_(0.5, 0.02, generator=g) with g = torch.Generator().manual_seed(name_key(1234, "0.weight"));
// the same with uniform_(-1, 3) and with normal_(0, 1) of 40 elements, which LibTorch draws in another way.
TEST(InitialValues, AreThoseOfPython) {
    InitRule normal = rule({"*"});
    normal.mean = 0.5;
    normal.std = 0.02;
    const float normals[] = {0x1.0d6110p-1F, 0x1.0ddacap-1F, 0x1.e95946p-2F,
                             0x1.04ba08p-1F, 0x1.0ffadap-1F, 0x1.db6768p-2F};
    const at::Tensor drawn = filled(weightless({2, 3}), normal, 1234, "0.weight");
    EXPECT_TRUE(drawn.is_contiguous());
    EXPECT_FALSE(drawn.requires_grad());
    for (int i = 0; i < 6; ++i) EXPECT_EQ(drawn.const_data_ptr<float>()[i], normals[i]) << i;

    InitRule uniform = rule({"*"}, "uniform");
    uniform.low = -1;
    uniform.high = 3;
    const float uniforms[] = {0x1.05b0c0p-4F, 0x1.49a788p+1F, 0x1.751606p+1F,
                              0x1.2a5e22p+1F, 0x1.37f214p+0F, 0x1.0901a0p+0F};
    const at::Tensor even = filled(weight({2, 3}), uniform, 1234, "0.weight");
    for (int i = 0; i < 6; ++i) EXPECT_EQ(even.const_data_ptr<float>()[i], uniforms[i]) << i;

    const at::Tensor many = filled(weightless({8, 5}), rule({"*"}), 1234, "0.weight");
    EXPECT_EQ(many.const_data_ptr<float>()[0], -0x1.56c42ap-4F);
    EXPECT_EQ(many.const_data_ptr<float>()[39], 0x1.ac9298p-1F);
}

TEST(InitialValues, DifferBySeedAndName) {
    const at::Tensor like = weight({4, 4});
    const std::string bits = bits_of(filled(like, rule({"*"}), 1, "a"));
    EXPECT_EQ(bits_of(filled(like, rule({"*"}), 1, "a")), bits);
    EXPECT_NE(bits_of(filled(like, rule({"*"}), 2, "a")), bits);
    EXPECT_NE(bits_of(filled(like, rule({"*"}), 1, "b")), bits);
}

TEST(InitialValues, ASourceFillsWhatARuleMatchesAndReadsTheRest) {
    TorchScriptOptions options = options_for({floats("x", {4})});
    options.init = {{rule({"b.weight"}), rule({"*.bias"}, "ones")}, 1234};
    LoadedModel model = load(half_weightless(), options);
    const auto value = [&](const char* name) { return model.source->weight(parameter(model.graph, name)); };
    EXPECT_EQ(bits_of(value("a.weight")), bits_of(weight({4, 4}, 1)));
    EXPECT_EQ(bits_of(value("a.bias")), bits_of(at::ones({4}))) << "a rule counts where the file has values, too";
    EXPECT_EQ(bits_of(value("b.bias")), bits_of(at::ones({4})));
    EXPECT_EQ(bits_of(value("b.weight")), bits_of(filled(weight({4, 4}), options.init.rules[0], 1234, "b.weight")));
    EXPECT_TRUE(value("b.weight").requires_grad());
    EXPECT_FALSE(parameter_of(model.graph, "b.weight").has_data);
    EXPECT_TRUE(parameter_of(model.graph, "a.weight").has_data);
}

TEST(InitialValues, WithoutARuleThereIsNoNumberThatCouldBeTakenForOne) {
    LoadedModel model = load(half_weightless(), options_for({floats("x", {4})}));
    EXPECT_TRUE(model.source->weight(parameter(model.graph, "b.weight")).isnan().all().item<bool>());
}

TEST(InitialValues, RulesThatNothingIsLeftForAreNamed) {
    const Graph graph = load(half_weightless(), options_for({floats("x", {4})})).graph;
    Plan plan;
    EXPECT_TRUE(check_init_rules(plan, graph).empty());
    plan.model.init = {rule({"b.*"}), rule({"b.bias", "c.*"})};
    const std::vector<Problem> problems = check_init_rules(plan, graph);
    ASSERT_EQ(problems.size(), 1U);
    EXPECT_EQ(problems[0].message,
              "model.init[1].match: no parameter is left for this rule; names look like 'a.weight'");
}

TEST(InitialValues, EveryParameterHasToHaveValuesFromSomewhere) {
    const Graph graph = load(half_weightless(), options_for({floats("x", {4})})).graph;
    Plan plan;
    EXPECT_THAT(refusal(ErrorKind::Plan, [&] { check_have_values(plan, graph); }),
                HasSubstr("the model file has no values for 'b.weight', 'b.bias'; add [[model.init]] tables that match "
                          "parameters, or name a file of weights in model.init_from"));
    plan.model.init = {rule({"b.*"})};
    EXPECT_NO_THROW(check_have_values(plan, graph));
    plan.model.init.clear();
    plan.model.init_from = "weights.safetensors";
    EXPECT_NO_THROW(check_have_values(plan, graph));
}

}  // namespace
}  // namespace vpp
