// Names of parameters: every order in which other parts of vpp meet them hangs on this list.
#include "graph/jit_parameters.hpp"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.hpp"
#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using torch::jit::Module;

std::vector<std::string> names_of(const std::vector<JitParameter>& parameters) {
    std::vector<std::string> names;
    for (const JitParameter& parameter : parameters) names.push_back(parameter.name);
    return names;
}

TEST(ListParameters, ParametersComeFirstThenBuffersThenAttributes) {
    Module inner("Inner"), outer("Outer");
    inner.register_buffer("running", at::zeros({2}));
    inner.register_parameter("w", at::zeros({2, 2}), false);
    outer.register_attribute("table", c10::TensorType::get(), at::zeros({3}));
    outer.register_module("inner", inner);
    outer.register_parameter("b", at::zeros({1}), false);
    const std::vector<JitParameter> listed = list_parameters(outer);
    EXPECT_EQ(names_of(listed), (std::vector<std::string>{"inner.w", "b", "inner.running", "table"}));
    EXPECT_FALSE(listed[1].is_buffer);
    EXPECT_TRUE(listed[2].is_buffer);
    EXPECT_TRUE(listed[3].is_buffer);
    EXPECT_EQ(listed[3].value, nullptr);
}

TEST(ListParameters, OneTensorIsOneEntryWithAllItsNames) {
    const at::Tensor shared = at::zeros({2});
    Module model("Model");
    model.register_parameter("first", shared, false);
    model.register_parameter("second", shared, false);
    model.register_buffer("third", shared);
    const std::vector<JitParameter> listed = list_parameters(model);
    ASSERT_EQ(listed.size(), 1U);
    EXPECT_EQ(listed[0].name, "first");
    EXPECT_EQ(listed[0].aliases, (std::vector<std::string>{"second", "third"}));
}

TEST(ListParameters, TwoTensorsInOneMemoryAreRefusedWhereOneChanges) {
    const at::Tensor whole = at::zeros({4, 2});
    Module model("Model");
    model.register_parameter("half", whole.narrow(0, 2, 2), false);
    model.register_parameter("head", at::zeros({2}), false);
    model.register_parameter("whole", whole, false);
    model.register_buffer("other_half", whole.narrow(0, 0, 2));
    const std::vector<JitParameter> listed = list_parameters(model);
    EXPECT_NO_THROW(refuse_shared_memory(listed, [](size_t) { return false; }));
    EXPECT_NO_THROW(refuse_shared_memory(listed, [](size_t i) { return i == 1; }));
    for (size_t changing : {0, 2, 3}) {
        EXPECT_THROW(refuse_shared_memory(listed, [&](size_t i) { return i == changing; }), Error) << changing;
    }
    try {
        refuse_shared_memory(listed, [](size_t i) { return i == 0; });
    } catch (const Error& error) {
        EXPECT_EQ(std::string(error.what()).find("'half' and 'whole' are two tensors in one memory"), 0)
            << error.what();
    }
    // Neighbours, as an RNN keeps its weights.
    Module flat("Flat");
    for (int row : {0, 1, 2, 3}) flat.register_parameter("w" + std::to_string(row), whole.select(0, row), false);
    EXPECT_NO_THROW(refuse_shared_memory(list_parameters(flat), [](size_t) { return true; }));
}

TEST(ListParameters, BuffersHaveNoGradients) {
    Module model("Model");
    model.register_parameter("w", at::zeros({2}).set_requires_grad(true), false);
    model.register_buffer("b", at::zeros({2}).set_requires_grad(true));
    model.register_attribute("table", c10::TensorType::get(), at::zeros({3}).set_requires_grad(true));
    const std::vector<JitParameter> listed = list_parameters(model);
    EXPECT_TRUE(listed[0].tensor.requires_grad());
    EXPECT_FALSE(listed[1].tensor.requires_grad());
    EXPECT_FALSE(listed[2].tensor.requires_grad());
}

TEST(ListParameters, WhatIsComplexOrSparseIsRefusedByName) {
    const auto refused = [](const at::Tensor& tensor, bool is_buffer) {
        return test::refusal(ErrorKind::BadData, [&] {
            refuse_odd_kinds(
                {{"ids", {}, at::zeros({2}, at::kLong), true, nullptr}, {"a.w", {}, tensor, is_buffer, nullptr}});
        });
    };
    EXPECT_EQ(refused(at::zeros({4}, at::kComplexFloat), false),
              "the parameter 'a.w' is of type ComplexFloat, which is not supported; keep real numbers in it, as "
              "torch.view_as_real gives them");
    EXPECT_EQ(refused(at::eye(2).to_sparse(), true),
              "the buffer 'a.w' is sparse, which is not supported; keep its indices and values, and make it of them in "
              "forward");
    EXPECT_NO_THROW(refuse_odd_kinds({{"w", {}, at::zeros({2}), false, nullptr}}));
}

/// Two parameters and a buffer, the second parameter under another name too.
std::vector<JitParameter> list_of_three(int64_t rows = 4) {
    return {{"a.w", {}, at::zeros({rows, 2}), false, nullptr},
            {"b.w", {"head.w"}, at::zeros({2}), false, nullptr},
            {"mask", {}, at::zeros({2}, at::kLong), true, nullptr}};
}

TEST(TakeWeights, TheTensorsAreThoseOfTrainingInItsOrder) {
    torch::jit::Graph graph;
    std::vector<JitParameter> twin = list_of_three();
    std::ranges::reverse(twin);
    for (JitParameter& parameter : twin) parameter.value = graph.addInput();
    torch::jit::Value* of_mask = twin[0].value;
    const std::vector<JitParameter> training = list_of_three();
    take_weights(twin, training, "eval.pt", "model.pt");
    EXPECT_EQ(names_of(twin), names_of(training));
    for (size_t i = 0; i < twin.size(); ++i) EXPECT_TRUE(twin[i].tensor.is_same(training[i].tensor)) << i;
    EXPECT_EQ(twin[2].value, of_mask);
}

TEST(TakeWeights, TheFirstThatDiffersIsNamed) {
    const auto refused = [](const std::function<void(std::vector<JitParameter>&)>& change) {
        std::vector<JitParameter> twin = list_of_three();
        change(twin);
        return test::refusal(ErrorKind::BadData, [&] { take_weights(twin, list_of_three(), "eval.pt", "model.pt"); });
    };
    EXPECT_EQ(refused([](auto& twin) {
                  twin[0].tensor = at::zeros({4, 3});
              }),
              "eval.pt is not the model of model.pt in eval mode: they differ in 'a.w' (got parameter float32[4, 3], "
              "expected parameter float32[4, 2]); trace two copies of one model, copy.deepcopy(model), behind train() "
              "and behind eval()");
    const auto differs = [&](const std::function<void(std::vector<JitParameter>&)>& change) {
        const std::string text = refused(change);
        const size_t begin = text.find("differ in ") + 10;
        return text.substr(begin, text.find(");", begin) + 1 - begin);
    };
    EXPECT_EQ(differs([](auto& twin) { twin.erase(twin.begin()); }),
              "'a.w' (got none, expected parameter float32[4, 2])");
    EXPECT_EQ(differs([](auto& twin) {
                  twin.push_back({"cache", {}, at::zeros({1}), true, nullptr});
              }),
              "'cache' (got buffer float32[1], expected none)");
    EXPECT_EQ(differs([](auto& twin) { twin[1].aliases.clear(); }),
              "'b.w' (got parameter float32[2], expected parameter float32[2], tied to 'head.w')");
    EXPECT_EQ(differs([](auto& twin) { twin[0].is_buffer = true; }),
              "'a.w' (got buffer float32[4, 2], expected parameter float32[4, 2])");
    EXPECT_EQ(differs([](auto& twin) { twin[2].tensor = at::zeros({2}, at::kComplexFloat); }),
              "'mask' (got buffer ComplexFloat[2], expected buffer int64[2])");
}

}  // namespace
}  // namespace vpp
