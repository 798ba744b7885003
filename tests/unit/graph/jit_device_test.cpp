#include "graph/jit_device.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/ir/irparser.h>

#include <unordered_map>

#include "support/far_device.hpp"

namespace vpp::test {
namespace {

struct Parsed {
    std::shared_ptr<torch::jit::Graph> graph = std::make_shared<torch::jit::Graph>();
    std::unordered_map<std::string, torch::jit::Value*> values;
};

Parsed parse(const std::string& text) {
    Parsed parsed;
    torch::jit::parseIR(text, parsed.graph.get(), parsed.values);
    return parsed;
}

/// The device that an input of the op of a value is the constant of.
at::Device device_input(const Parsed& parsed, const std::string& value, size_t input) {
    return torch::jit::toIValue(parsed.values.at(value)->node()->input(input)).value().toDevice();
}

TEST(JitDevice, NamedDevicesAndOpsThatNameNoneBecomeTheDevice) {
    const Parsed parsed = parse(R"IR(
graph(%x : Tensor, %n : int):
  %none : NoneType = prim::Constant()
  %cpu : Device = prim::Constant[value="cpu"]()
  %type : int = prim::Constant[value=4]()
  %named : Tensor = aten::arange(%n, %type, %none, %cpu, %none)
  %unnamed : Tensor = aten::arange(%n, %type, %none, %none, %none)
  %like : Tensor = aten::zeros_like(%x, %none, %none, %none, %none, %none)
  return (%named, %unnamed, %like))IR");
    place_graph(*parsed.graph, far_device());
    EXPECT_EQ(device_input(parsed, "named", 3), far_device());
    EXPECT_EQ(device_input(parsed, "unnamed", 3), far_device());
    EXPECT_TRUE(parsed.values.at("like")->node()->input(3)->mustBeNone()) << "it follows its input";
    EXPECT_TRUE(parsed.values.at("unnamed")->node()->input(2)->mustBeNone()) << "only the device is filled in";
}

TEST(JitDevice, BlocksAreLookedIntoAsWell) {
    const Parsed parsed = parse(R"IR(
graph(%n : int, %which : bool):
  %none : NoneType = prim::Constant()
  %y : Tensor = prim::If(%which)
    block0():
      %a : Tensor = aten::arange(%n, %none, %none, %none, %none)
      -> (%a)
    block1():
      %b : Tensor = aten::arange(%n, %none, %none, %none, %none)
      -> (%b)
  return (%y))IR");
    place_graph(*parsed.graph, far_device());
    EXPECT_EQ(device_input(parsed, "a", 3), far_device());
    EXPECT_EQ(device_input(parsed, "b", 3), far_device());
}

TEST(JitDevice, ConstantTensorsGoThereUnlessTheyAreReadAsNumbers) {
    const auto graph = std::make_shared<torch::jit::Graph>();
    torch::jit::Value* table = graph->insertConstant(at::arange(4));
    torch::jit::Value* number = graph->insertConstant(at::full({}, 3, at::kLong));
    const auto op = [&](const char* name, torch::jit::Value* input) {
        torch::jit::Node* node = graph->insertNode(graph->create(c10::Symbol::fromQualString(name), {input}));
        return node;
    };
    torch::jit::Node* uses = op("aten::neg", table);
    torch::jit::Node* reads = op("aten::Int", number);
    place_graph(*graph, far_device());
    EXPECT_EQ(torch::jit::toIValue(uses->input())->toTensor().device(), far_device());
    EXPECT_TRUE(torch::jit::toIValue(reads->input())->toTensor().is_cpu());
}

}  // namespace
}  // namespace vpp::test
