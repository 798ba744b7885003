// The casts of cards without cards: against the lists that LibTorch registers, and against its own autocast on a device
// that has those lists.
#include "graph/card_autocast.hpp"

#include <ATen/Functions.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "support/far_device.hpp"
#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using namespace test;
using ::testing::HasSubstr;

std::set<std::string> ops_with_kernels_for(c10::DispatchKey key) {
    std::set<std::string> names;
    c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
    for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
        const auto op = dispatcher.findSchema(name);
        if (op && op->hasKernelForDispatchKey(key)) names.insert(c10::toString(name));
    }
    return names;
}

TEST(CardAutocast, EveryOpThatLibTorchCastsOnCardsIsCast) {
    std::set<std::string> on_cards = ops_with_kernels_for(c10::DispatchKey::AutocastCUDA);
    EXPECT_GT(on_cards.size(), 100u);
    // What only LibTorch's own code for cards calls, and norms over named dims, which TorchScript does not have.
    for (const char* name :
         {"aten::cudnn_convolution", "aten::cudnn_convolution_transpose", "aten::norm.names_ScalarOpt_dim"}) {
        EXPECT_EQ(on_cards.erase(name), 1u) << name;
    }
    on_cards.erase("aten::_cudnn_rnn");  // there in builds with CUDA
    std::set<std::string> here = ops_with_kernels_for(c10::DispatchKey::AutocastIPU);
    for (const char* name : {"aten::lstm.input", "aten::gru.input", "aten::rnn_tanh.input", "aten::rnn_relu.input"}) {
        EXPECT_EQ(here.erase(name), 1u) << name;
    }
    EXPECT_EQ(here, on_cards);
}

/// Of two matrices [4, 4].
using Op = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& y)>;

const std::vector<std::pair<const char*, Op>>& tried_ops() {
    static const std::vector<std::pair<const char*, Op>> kOps{
        {"linear", [](auto& x, auto& y) { return at::linear(x, y); }},
        {"linear with a bias", [](auto& x, auto& y) { return at::linear(x, y, y[0]); }},
        {"matmul", [](auto& x, auto& y) { return at::matmul(x, y); }},
        {"einsum",
         [](auto& x, auto& y) {
             return at::einsum("ij,jk->ik", {x, y});
         }},
        {"conv1d", [](auto& x, auto& y) { return at::conv1d(x.unsqueeze(0), y.unsqueeze(2)); }},
        {"prelu", [](auto& x, auto& y) { return at::prelu(x, y[0]); }},
        {"layer_norm", [](auto& x, auto& y) { return at::layer_norm(x, {4}, y[0]); }},
        {"group_norm", [](auto& x, auto& y) { return at::group_norm(x, 2, y[0]); }},
        {"exp", [](auto& x, auto&) { return at::exp(x); }},
        {"pow", [](auto& x, auto&) { return at::pow(x, 2); }},
        {"mse_loss", [](auto& x, auto& y) { return at::mse_loss(x, y); }},
        {"softmax", [](auto& x, auto&) { return at::softmax(x, 1); }},
        {"softmax with a dtype", [](auto& x, auto&) { return at::softmax(x, 1, at::kBFloat16); }},
        {"sum", [](auto& x, auto&) { return at::sum(x); }},
        {"sum over a dim", [](auto& x, auto&) { return at::sum(x, {1}); }},
        {"sum of integers", [](auto& x, auto&) { return at::sum(x.to(at::kLong)); }},
        {"cumsum", [](auto& x, auto&) { return at::cumsum(x, 1); }},
        {"norm", [](auto& x, auto&) { return at::norm(x); }},
        {"norm over a dim", [](auto& x, auto&) { return at::norm(x, 2, {1}, true); }},
        {"addcmul", [](auto& x, auto& y) { return at::addcmul(x, y, y); }},
        {"atan2", [](auto& x, auto& y) { return at::atan2(x, y); }},
        {"tensordot", [](auto& x, auto& y) { return at::tensordot(x, y, {1}, {0}); }},
        {"dot", [](auto& x, auto& y) { return at::dot(x[0], y[0]); }},
        {"add", [](auto& x, auto& y) { return x + y; }},
        {"cat",
         [](auto& x, auto& y) {
             return at::cat({x, y});
         }},
        {"mean", [](auto& x, auto&) { return at::mean(x); }},
        {"relu", [](auto& x, auto&) { return at::relu(x); }},
        {"gelu", [](auto& x, auto&) { return at::gelu(x); }},
        {"a chain", [](auto& x, auto& y) { return at::mean(at::softmax(at::linear(x, y), 1) + x); }},
    };
    return kOps;
}

/// The dtype of what an op gives; empty where the device has no kernel for it.
std::string made(const Op& op, at::Device device, at::ScalarType first, at::ScalarType second) {
    const at::Tensor x = at::ones({4, 4}, first).to(device), y = at::ones({4, 4}, second).to(device);
    try {
        return c10::toString(op(x, y).scalar_type());
    } catch (const c10::Error&) {
        return "";
    }
}

TEST(CardAutocast, TensorsOfAnyDeviceGetTheDtypesOfLibTorchsOwn) {
    const std::vector<at::ScalarType> dtypes{at::kFloat, at::kBFloat16, at::kDouble};
    std::map<at::DeviceType, int> num_compared;
    for (const auto& [name, op] : tried_ops()) {
        for (const at::ScalarType first : dtypes) {
            for (const at::ScalarType second : dtypes) {
                const auto as_on_cards = [&, &op = op](at::Device device) {
                    const CardAutocastScope scope(at::kBFloat16);
                    return made(op, device, first, second);
                };
                const auto expected = [&, &op = op] {
                    const AutocastScope scope(far_device().type(), at::kBFloat16);
                    return made(op, far_device(), first, second);
                }();
                for (const at::DeviceType device : {at::kCPU, at::kMeta}) {
                    const std::string dtype = as_on_cards(device);
                    if (dtype.empty() || expected.empty()) continue;
                    EXPECT_EQ(dtype, expected) << name << " of " << first << " and " << second << " on " << device;
                    ++num_compared[device];
                }
            }
        }
    }
    EXPECT_GT(num_compared[at::kCPU], 200);
    EXPECT_GT(num_compared[at::kMeta], 150);
}

TEST(CardAutocast, EndsWithItsScopeAndIsOfItsThread) {
    const auto dtype = [] { return at::linear(at::ones({2, 4}), at::ones({3, 4})).scalar_type(); };
    {
        const CardAutocastScope scope(at::kHalf);
        EXPECT_EQ(dtype(), at::kHalf) << "tensors of the CPU too";
        const CardAutocastScope nothing(std::nullopt);
        EXPECT_EQ(dtype(), at::kHalf);
    }
    EXPECT_EQ(dtype(), at::kFloat);
}

TEST(CardAutocast, RecurrentOpsGiveWhatCudnnGives) {
    const CardAutocastScope scope(at::kBFloat16);
    const at::Tensor x = at::ones({3, 2, 4}, at::kMeta), state = at::ones({1, 2, 4}, at::kMeta);
    const std::vector<at::Tensor> weights{at::ones({16, 4}, at::kMeta), at::ones({16, 4}, at::kMeta)};
    const auto [output, hidden, cell] = at::lstm(x, {state, state}, weights, false, 1, 0.0, false, false, false);
    for (const at::Tensor* tensor : {&output, &hidden, &cell}) EXPECT_EQ(tensor->scalar_type(), at::kBFloat16);
}

TEST(CardAutocast, ArgumentsAreCastWithoutTheOp) {
    const CardAutocastScope scope(at::kHalf);
    const auto cast = [](const std::string& name) {
        std::vector<c10::IValue> arguments{at::ones({2}), c10::IValue(), 3};
        cast_as_on_cards(name, arguments);
        EXPECT_TRUE(arguments[1].isNone());
        return arguments[0].toTensor().scalar_type();
    };
    EXPECT_EQ(cast("aten::scaled_dot_product_attention"), at::kHalf);
    EXPECT_EQ(cast("aten::layer_norm"), at::kFloat);
    EXPECT_EQ(cast("aten::embedding"), at::kFloat) << "as it came";
}

ModuleSpec mixed_model() {
    return {"Model",
            "def forward(self, x):\n    y = torch.mm(x, self.w)\n    z = torch.softmax(y, 1)\n"
            "    return torch.mean(torch.layer_norm(y + z, [4], self.b))\n",
            {{"w", weight({4, 4})}, {"b", weight({4})}}};
}

std::vector<DType> dtypes_of(const Graph& graph) {
    std::vector<DType> dtypes;
    for (const GraphOp& op : graph.ops) {
        const GraphValue& value = graph.values.at(static_cast<size_t>(op.outputs.at(0)));
        if (!value.tensors.empty()) dtypes.push_back(graph.tensors.at(static_cast<size_t>(value.tensors[0])).dtype);
    }
    return dtypes;
}

TEST(CardAutocast, AModelIsPlannedWithTheDtypesOfItsDevice) {
    TorchScriptOptions options = options_for({floats("x", {4})}, 5);
    options.precision = "bf16";
    using enum DType;
    EXPECT_EQ(dtypes_of(load(mixed_model(), options).graph), (std::vector<DType>{BF16, BF16, BF16, BF16, BF16}));
    options.device = at::Device(at::kCUDA, 0);  // though there is none
    EXPECT_EQ(dtypes_of(load(mixed_model(), options).graph), (std::vector<DType>{BF16, F32, F32, F32, F32}));
}

TEST(CardAutocast, WhatCardsRefuseIsRefusedBefore) {
    const ModuleSpec model{"Model",
                           "def forward(self, x):\n    p = torch.sigmoid(torch.mm(x, self.w))\n"
                           "    return torch.binary_cross_entropy(p, torch.zeros_like(p))\n",
                           {{"w", weight({4, 4})}}};
    TorchScriptOptions options = options_for({floats("x", {4})}, 5);
    options.device = at::Device(at::kCUDA, 0);
    EXPECT_NO_THROW(load(model, options));
    options.precision = "bf16";
    const std::string text = refusal(ErrorKind::BadData, [&] { load(model, options); });
    EXPECT_THAT(text,
                HasSubstr("autocast on cards does not run it, since its gradient may not fit into half precision; "
                          "binary_cross_entropy_with_logits in place of sigmoid and it is safe"));
}

}  // namespace
}  // namespace vpp
