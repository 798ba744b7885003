#include "graph/jit_device.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/ir/irparser.h>

#include <unordered_map>
#include <vector>

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

TEST(JitDevice, TheHostIsTheDeviceTooButForOpsThatWantAnInputThere) {
    const Parsed parsed = parse(R"IR(
graph(%x : Tensor, %lengths : Tensor):
  %first : bool = prim::Constant[value=1]()
  %here : Tensor = aten::cpu(%lengths)
  %y : Tensor = aten::neg(%here)
  %data : Tensor, %sizes : Tensor = aten::_pack_padded_sequence(%x, %here, %first)
  return (%y, %data, %sizes))IR");
    place_graph(*parsed.graph, far_device());
    EXPECT_EQ(parsed.values.at("y")->node()->input(), parsed.values.at("lengths"));
    const torch::jit::Node* pack = parsed.values.at("data")->node();
    EXPECT_EQ(pack->input(0), parsed.values.at("x"));
    EXPECT_STREQ(pack->input(1)->node()->kind().toQualString(), "aten::cpu");
    EXPECT_EQ(pack->input(1)->node()->input(), parsed.values.at("lengths"));
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

TEST(JitDevice, NumbersStayWhereOpsCalculateWithThem) {
    struct Case {
        const char* name;
        at::Tensor constant;
        size_t place;
        bool stays;
    };
    const at::Tensor third = at::full({}, 1. / 3, at::kDouble);
    const std::vector<Case> cases{{"aten::div", third, 1, true},
                                  {"aten::sub", third, 0, true},
                                  {"aten::mul_", third, 1, true},
                                  {"aten::mul", at::full({}, 3, at::kLong), 1, true},
                                  {"aten::mul_", third, 0, false},
                                  {"aten::where", third, 1, false},
                                  {"aten::div", third.to(at::kFloat), 1, false},
                                  {"aten::div", third.view({1}), 1, false}};
    for (const Case& one : cases) {
        const auto graph = std::make_shared<torch::jit::Graph>();
        std::vector<torch::jit::Value*> inputs{graph->addInput(), graph->addInput()};
        inputs[one.place] = graph->insertConstant(one.constant);
        torch::jit::Node* op =
            graph->insertNode(graph->create(c10::Symbol::fromQualString(one.name), {inputs[0], inputs[1]}));
        place_graph(*graph, far_device());
        const at::Tensor placed = torch::jit::toIValue(op->input(one.place))->toTensor();
        EXPECT_EQ(placed.is_cpu(), one.stays) << one.name << one.constant;
    }
}

TEST(JitDevice, ConstantsOfOneMemoryHaveOneThere) {
    const auto graph = std::make_shared<torch::jit::Graph>();
    const at::Tensor table = at::arange(4);
    std::vector<torch::jit::Node*> ops;
    for (const at::Tensor& constant : {table, table.detach(), table.slice(0, 0, 2)}) {
        ops.push_back(graph->insertNode(
            graph->create(c10::Symbol::fromQualString("aten::neg"), {graph->insertConstant(constant)})));
    }
    place_graph(*graph, far_device());
    const auto placed = [&](size_t op) { return torch::jit::toIValue(ops[op]->input())->toTensor(); };
    EXPECT_TRUE(placed(1).is_alias_of(placed(0)));
    EXPECT_FALSE(placed(1).is_same(placed(0))) << "each op has a tensor of its own";
    EXPECT_FALSE(placed(2).is_alias_of(placed(0)));
    EXPECT_EQ(placed(2).numel(), 2);
}

}  // namespace
}  // namespace vpp::test
