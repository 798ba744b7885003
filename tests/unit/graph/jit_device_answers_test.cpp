// Branches on the device go as they go where the model will run, wherever its ops are tried.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>

#include "ir_text.hpp"
#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using namespace test;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

TorchScriptOptions options_on(at::Device device) {
    TorchScriptOptions options = options_for({floats("x", {4})});
    options.device = device;
    return options;
}

const at::Device kCard(at::kCUDA, 0);  // models are loaded for one without it

/// The ways differ in shape and in gradient.
ModuleSpec model_that_asks(const std::string& question) {
    return {"Model",
            R"JIT(
def forward(self, x):
    y = torch.tanh(torch.mm(x, self.w))
    if )JIT" + question +
                R"JIT(:
        z = torch.cat([y, y, y], 0)
    else:
        z = torch.sin(y.detach())
    return torch.mean(y * torch.mean(z, 0))
)JIT",
            {{"w", weight({4, 4})}}};
}

/// Whether the way of `if` is in the graph; neither other nor branch may be left.
bool goes_in(const std::string& question, at::Device device) {
    const std::vector<std::string> labels = labels_of(load(model_that_asks(question), options_on(device)).graph);
    EXPECT_THAT(labels, Not(Contains("prim::If "))) << question;
    const bool goes_in = std::ranges::find(labels, "aten::cat ") != labels.end();
    EXPECT_NE(goes_in, std::ranges::find(labels, "aten::sin ") != labels.end()) << question;
    return goes_in;
}

TEST(DeviceAnswers, AreThoseOfTheDeviceThatRunsTheModel) {
    for (const char* question : {"y.is_cpu", "not y.is_cuda", "y.device.type == \"cpu\"",
                                 "y.device == torch.device(\"cpu\")", "x.device != torch.device(\"cuda:0\")"}) {
        EXPECT_TRUE(goes_in(question, at::kCPU)) << question;
        EXPECT_FALSE(goes_in(question, kCard)) << question;
    }
    for (const char* question : {"not y.is_meta", "x.device == y.device"}) {
        EXPECT_TRUE(goes_in(question, at::kCPU)) << question;
        EXPECT_TRUE(goes_in(question, kCard)) << question;
    }
    EXPECT_FALSE(goes_in("y.is_meta or y.is_mps", kCard));
}

TEST(DeviceAnswers, TheNumberOfACardIsNotKnown) {
    for (const char* question : {"str(y.device) == \"cpu\"", "y.device.index is None", "y.get_device() < 0"}) {
        EXPECT_TRUE(goes_in(question, at::kCPU)) << question;
        const Graph graph = load(model_that_asks(question), options_on(kCard)).graph;
        const GraphOp& branch = graph.ops[static_cast<size_t>(op_of(graph, "prim::If"))];
        const GraphValue& made = graph.values[static_cast<size_t>(branch.outputs.at(0))];
        EXPECT_TRUE(graph.tensors[static_cast<size_t>(made.tensors.at(0))].from_branch) << question;
    }
}

TEST(DeviceAnswers, NoBitChanges) {
    for (const char* question : {"y.is_cpu", "y.is_meta", "x.is_cuda", "y.device.type in [\"cpu\"]"}) {
        load_exactly(model_that_asks(question), options_on(at::kCPU), {{"x", values({2, 4})}});
    }
}

TEST(DeviceAnswers, TheDigestIsOneForAllDevices) {
    const auto digest = [](const std::string& question, at::Device device) {
        return load(model_that_asks(question), options_on(device)).graph.digest;
    };
    EXPECT_EQ(digest("y.is_cuda", at::kCPU), digest("y.is_cuda", kCard));
    EXPECT_NE(digest("y.is_cuda", at::kCPU), digest("y.is_xpu", at::kCPU)) << "though both go one way";
}

/// "cpu", "cuda", or "" where it is not known: the type of the device of %y.
std::string answer_on_card(const std::string& code) {
    test::ParsedGraph parsed = test::parse_graph(R"IR(
graph(%x : Tensor, %lengths : Tensor, %flag : bool):
  %yes : bool = prim::Constant[value=1]()
  %one : int = prim::Constant[value=1]()
  %packed : Tensor, %sizes : Tensor = aten::_pack_padded_sequence(%x, %lengths, %yes)
)IR" + code + R"IR(
  %d : Device = prim::device(%y)
  %type : str = prim::type(%d)
  return (%type))IR");
    EXPECT_THAT(answer_devices(parsed.jit, at::kCUDA), HasSubstr("prim::type"));
    const auto answer = torch::jit::toIValue(parsed.jit.graph->outputs()[0]);
    return answer ? answer->toStringRef() : "";
}

TEST(DeviceAnswers, LengthsOfSequencesLieOnTheHost) {
    EXPECT_EQ(answer_on_card("  %y : Tensor = aten::relu(%packed)"), "cuda");
    EXPECT_EQ(answer_on_card("  %y : Tensor = prim::unchecked_cast(%sizes)"), "cpu");
    EXPECT_EQ(answer_on_card("  %y : Tensor = aten::relu(%sizes)"), "") << "another op may bring it to the card";
    EXPECT_EQ(answer_on_card("  %y : Tensor = aten::mul(%sizes, %x)"), "cuda");
    EXPECT_EQ(answer_on_card("  %held : Tensor[] = prim::ListConstruct(%x, %sizes)\n"
                             "  %y : Tensor = aten::__getitem__(%held, %one)"),
              "");
}

TEST(DeviceAnswers, ABranchMayGiveWhatLiesElsewhere) {
    const std::string branch = R"IR(
  %y : Tensor = prim::If(%flag)
    block0():
      %a : Tensor = aten::relu(%x)
      -> (%a)
    block1():
      -> ()IR";
    EXPECT_EQ(answer_on_card(branch + "%packed)"), "cuda");
    EXPECT_EQ(answer_on_card(branch + "%sizes)"), "");
}

TEST(DeviceAnswers, WhatAsksNothingStaysAsItIs) {
    test::ParsedGraph parsed = test::parse_graph(R"IR(
graph(%x : Tensor):
  %y : Tensor = aten::relu(%x)
  return (%y))IR");
    EXPECT_EQ(answer_devices(parsed.jit, at::kCPU), "");
}

}  // namespace
}  // namespace vpp
