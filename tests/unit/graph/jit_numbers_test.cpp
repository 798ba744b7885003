#include "graph/jit_numbers.hpp"

#include <ATen/ops/add.h>
#include <ATen/ops/div.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mul.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/ir/constants.h>

namespace vpp {
namespace {

const at::Tensor kHundredth = at::full({}, 0.01, at::kDouble);

/// An op with two inputs, one of them a constant. Gives the constant as it is when numbers are restored.
at::Tensor restored(const char* kind, const at::Tensor& constant, size_t place) {
    torch::jit::Graph graph;
    std::vector<torch::jit::Value*> inputs{graph.addInput(), graph.addInput()};
    inputs[place] = graph.insertConstant(constant);
    torch::jit::Node* op = graph.insertNode(graph.create(c10::Symbol::fromQualString(kind), {inputs[0], inputs[1]}));
    restore_numbers(graph);
    return torch::jit::toIValue(op->input(place))->toTensor();
}

TEST(JitNumbers, AreWhatPythonCalculatesWith) {
    const at::Tensor loss = at::full({}, 0.7F, at::kFloat), half = loss.to(at::kBFloat16);
    EXPECT_EQ(at::mul(loss, kHundredth).scalar_type(), at::kDouble) << "the control";
    for (const at::Tensor& x : {loss, half}) {
        const at::Tensor product = at::mul(x, restored("aten::mul", kHundredth, 1));
        EXPECT_EQ(product.scalar_type(), x.scalar_type());
        EXPECT_EQ(product.item<double>(), at::mul(x, 0.01).item<double>());
        EXPECT_EQ(at::add(restored("aten::add", kHundredth, 0), x).item<double>(), at::add(x, 0.01).item<double>());
        EXPECT_EQ(at::div(x, restored("aten::div", at::full({}, 3, at::kLong), 1)).item<double>(),
                  at::div(x, 3).item<double>());
    }
    EXPECT_FALSE(kHundredth.unsafeGetTensorImpl()->is_wrapped_number()) << "others may have it too";
}

TEST(JitNumbers, OthersStayTensors) {
    struct Case {
        const char* kind;
        at::Tensor constant;
        size_t place;
    };
    for (const Case& one : {Case{"aten::detach_copy", kHundredth, 0}, Case{"aten::where", kHundredth, 1},
                            Case{"aten::mul_", kHundredth, 0}, Case{"aten::mul", kHundredth.to(at::kFloat), 1},
                            Case{"aten::mul", kHundredth.view({1}), 1}}) {
        EXPECT_FALSE(restored(one.kind, one.constant, one.place).unsafeGetTensorImpl()->is_wrapped_number())
            << one.kind << one.constant;
    }
}

/// float32 has no 0.1 * 3 that a float64 has.
TEST(JitNumbers, WhatIsCalculatedOfSizesIsNotRounded) {
    torch::jit::Graph graph;
    const auto op = [&](const char* kind, std::vector<torch::jit::Value*> inputs) {
        return graph.insertNode(graph.create(c10::Symbol::fromQualString(kind), inputs));
    };
    torch::jit::Value* x = graph.addInput();
    torch::jit::Value* size = op("prim::NumToTensor", {graph.addInput()})->output();
    torch::jit::Node* width = op("aten::mul", {size, graph.insertConstant(kHundredth)});
    torch::jit::Node* sum = op("aten::add", {graph.insertConstant(kHundredth), width->output()});
    torch::jit::Node* product = op("aten::mul", {x, sum->output()});
    torch::jit::Node* shifted = op("aten::add", {product->output(), graph.insertConstant(kHundredth)});
    restore_numbers(graph);
    const auto is_number = [](const torch::jit::Node* node, size_t place) {
        return torch::jit::toIValue(node->input(place))->toTensor().unsafeGetTensorImpl()->is_wrapped_number();
    };
    EXPECT_FALSE(is_number(width, 1));
    EXPECT_FALSE(is_number(sum, 0));
    EXPECT_TRUE(is_number(shifted, 1));
}

TEST(JitNumbers, EachValueIsLookedAtOnce) {
    torch::jit::Graph graph;
    const auto op = [&](const char* kind, std::vector<torch::jit::Value*> inputs) {
        return graph.insertNode(graph.create(c10::Symbol::fromQualString(kind), inputs))->output();
    };
    torch::jit::Value* value = op("prim::NumToTensor", {graph.addInput()});
    for (int i = 0; i < 200; ++i) value = op("aten::add", {value, value});  // 2^200 ways back to the size
    torch::jit::Value* last = op("aten::add", {value, graph.insertConstant(kHundredth)});
    restore_numbers(graph);
    const at::Tensor number = torch::jit::toIValue(last->node()->input(1))->toTensor();
    EXPECT_FALSE(number.unsafeGetTensorImpl()->is_wrapped_number());
}

}  // namespace
}  // namespace vpp
