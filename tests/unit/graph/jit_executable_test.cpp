// Runs of ops as code of their own.
#include "graph/jit_executable.hpp"

#include <ATen/TensorOperators.h>
#include <ATen/ops/div.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/jit/ir/irparser.h>

#include <algorithm>
#include <unordered_map>

#include "support/far_device.hpp"
#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using namespace test;

struct ParsedGraph {
    JitGraph jit;
    std::unordered_map<std::string, torch::jit::Value*> values;
    torch::jit::Value* at(const std::string& name) const { return values.at(name); }
};

ParsedGraph parse_graph(const std::string& text) {
    ParsedGraph parsed;
    parsed.jit.graph = std::make_shared<torch::jit::Graph>();
    torch::jit::parseIR(text, parsed.jit.graph.get(), parsed.values);
    list_ops(parsed.jit);
    insert_reseeds(parsed.jit);
    return parsed;
}

constexpr const char* kThree = R"IR(
graph(%x : Tensor, %w : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::mul(%x, %w)
  %n : int = aten::size(%a, %one)
  %b : Tensor = aten::add(%a, %w, %n)
  %c : Tensor = aten::add(%b, %x, %one)
  return (%c))IR";

TEST(Executable, ASliceTakesAndGivesWhatIsAskedFor) {
    const ParsedGraph parsed = parse_graph(kThree);
    const at::Tensor x = values({2, 3}), w = values({3}, 1);
    const auto first =
        compile_ops(parsed.jit, {0, 1}, {parsed.at("x"), parsed.at("w")}, {parsed.at("n"), parsed.at("a")});
    const std::vector<c10::IValue> made = first->run({x, w}, 0);
    ASSERT_EQ(made.size(), 2U);
    EXPECT_EQ(made[0].toInt(), 3);
    const auto second = compile_ops(parsed.jit, {2, 3},
                                    {parsed.at("a"), parsed.at("n"), parsed.at("w"), parsed.at("x")}, {parsed.at("c")});
    const at::Tensor c = second->run({made[1], made[0], w, x}, 0).at(0).toTensor();
    EXPECT_EQ(bits_of(c), bits_of((x * w).add(w, 3).add(x)));
    EXPECT_EQ(bits_of(second->run({made[1], made[0], w, x}, 0).at(0).toTensor()), bits_of(c)) << "it runs again";
}

TEST(Executable, AValueThatWasNotPassedIsABug) {
    const ParsedGraph parsed = parse_graph(kThree);
    EXPECT_THAT(refusal(ErrorKind::Bug,
                        [&] {
                            compile_ops(parsed.jit, {2, 3}, {parsed.at("a")}, {parsed.at("c")});
                        }),
                ::testing::HasSubstr("all its values as inputs"));
}

TEST(Executable, OpsBetweenMayBeLeftOut) {
    const ParsedGraph parsed = parse_graph(kThree);
    const at::Tensor x = values({2, 3}), w = values({3}, 1);
    const auto code =
        compile_ops(parsed.jit, {0, 2}, {parsed.at("x"), parsed.at("w"), parsed.at("n")}, {parsed.at("b")});
    EXPECT_EQ(bits_of(code->run({x, w, 5}, 0).at(0).toTensor()), bits_of((x * w).add(w, 5)));
}

TEST(Executable, AnInputMayLeaveAsItCame) {
    const ParsedGraph parsed = parse_graph(kThree);
    const at::Tensor x = values({2, 3}), w = values({3}, 1);
    const auto code = compile_ops(parsed.jit, {0}, {parsed.at("x"), parsed.at("w")}, {parsed.at("x"), parsed.at("a")});
    EXPECT_TRUE(code->run({x, w}, 0).at(0).toTensor().is_same(x));
}

TEST(Executable, RandomOpsGetTheSeedOfTheirSiteInEverySlice) {
    const ParsedGraph parsed = parse_graph(R"IR(
graph(%x : Tensor):
  %p : float = prim::Constant[value=0.5]()
  %train : bool = prim::Constant[value=1]()
  %a : Tensor = aten::dropout(%x, %p, %train)
  %b : Tensor = aten::dropout(%a, %p, %train)
  return (%b))IR");
    EXPECT_EQ(parsed.jit.num_sites, 2);
    EXPECT_EQ(parsed.jit.ops[1].random_site, 1);
    const at::Tensor x = at::ones({64});
    const auto both = compile_ops(parsed.jit, {0, 1}, {parsed.at("x")}, {parsed.at("a"), parsed.at("b")});
    const auto second = compile_ops(parsed.jit, {1}, {parsed.at("a")}, {parsed.at("b")});
    const std::vector<c10::IValue> whole = both->run({x}, 11);
    EXPECT_EQ(bits_of(second->run({whole[0]}, 11).at(0).toTensor()), bits_of(whole[1].toTensor()));
    EXPECT_NE(bits_of(second->run({whole[0]}, 12).at(0).toTensor()), bits_of(whole[1].toTensor()));
}

TEST(Executable, AFailingOpThrowsAndTheNextRunIsClean) {
    const ParsedGraph parsed = parse_graph(kThree);
    const auto code = compile_ops(parsed.jit, {0}, {parsed.at("x"), parsed.at("w")}, {parsed.at("a")});
    EXPECT_THROW(code->run({values({2, 3}), values({4})}, 0), std::exception);
    EXPECT_NO_THROW(code->run({values({2, 3}), values({3})}, 0));
}

TEST(Executable, ALoopReadsWhatItIsAddedTo) {
    const ParsedGraph parsed = parse_graph(R"IR(
graph(%x : Tensor, %n : int):
  %true : bool = prim::Constant[value=1]()
  %one : int = prim::Constant[value=1]()
  %h : Tensor = aten::tanh(%x)
  %s : Tensor = prim::Loop(%n, %true, %x)
    block0(%k : int, %before : Tensor):
      %g : Tensor = prim::Loop(%n, %true, %before)
        block0(%i : int, %inner : Tensor):
          %w : Tensor = aten::mul(%inner, %h)
          -> (%true, %w)
      %t : Tensor = aten::add(%before, %g, %k)
      -> (%true, %t)
  %y : Tensor = aten::add(%h, %s, %one)
  return (%y))IR");
    const at::Tensor x = values({2, 3}), h = x.tanh();
    at::Tensor s = x;
    for (int k = 0; k < 3; ++k) s = s.add(s * h * h * h, k);
    const auto code = compile_ops(parsed.jit, {0, 1, 2}, {parsed.at("x"), parsed.at("n")}, {parsed.at("y")});
    EXPECT_EQ(bits_of(code->run({x, 3}, 0).at(0).toTensor()), bits_of(h.add(s)));
}

/// As eager Python divides on a card: by a number of the host, which has other bits there than a tensor of the card.
TEST(Executable, ANumberThatATraceWroteDownIsOneOfTheHost) {
    ParsedGraph parsed = parse_graph(R"IR(
graph(%x : Tensor, %c : Tensor):
  %y : Tensor = aten::div(%x, %c)
  return (%y))IR");
    torch::jit::Graph& graph = *parsed.jit.graph;
    const torch::jit::WithInsertPoint at_start(*graph.nodes().begin());
    parsed.at("c")->replaceAllUsesWith(graph.insertConstant(at::full({}, 3, at::kDouble)));
    const at::Device device = device_beside_cpu();
    const at::Tensor x = values({1001}).to(device);
    const auto made = compile_ops(parsed.jit, {0}, {parsed.at("x")}, {parsed.at("y")}, device)->run({x}, 0);
    EXPECT_EQ(bits_of(made.at(0).toTensor().cpu()), bits_of(at::div(x, 3).cpu()));
    if (!device.is_cuda()) return;
    const at::Tensor there = at::full({}, 3, x.options());
    EXPECT_NE(bits_of(at::div(x, there).cpu()), bits_of(at::div(x, 3).cpu())) << "the control";
}

/// Autograd adds gradients in the order of these numbers. On a card its own thread would count for itself.
TEST(Executable, NodesHaveTheOrderOfTheOpsWhereForwardGoesBack) {
    const ParsedGraph parsed = parse_graph(R"IR(
graph(%x : Tensor):
  %none : NoneType = prim::Constant()
  %true : bool = prim::Constant[value=1]()
  %false : bool = prim::Constant[value=0]()
  %zero : int = prim::Constant[value=0]()
  %place : Tensor = aten::tanh(%x)
  %wave : Tensor = aten::sin(%place)
  %energy : Tensor = aten::sum(%wave, %none)
  %energies : Tensor[] = prim::ListConstruct(%energy)
  %places : Tensor[] = prim::ListConstruct(%place)
  %forces : Tensor?[] = aten::grad(%energies, %places, %none, %none, %true, %false)
  %first : Tensor? = aten::__getitem__(%forces, %zero)
  %force : Tensor = prim::unchecked_unwrap_optional(%first)
  %behind : Tensor = aten::cos(%place)
  return (%behind))IR");
    const at::Device device = device_beside_cpu();
    const auto code =
        compile_ops(parsed.jit, OpRange{0, static_cast<int>(parsed.jit.ops.size())}.list(), {parsed.at("x")},
                    {parsed.at("place"), parsed.at("force"), parsed.at("behind")}, device);
    const at::Tensor x = values({8}).to(device).requires_grad_();
    for (int run = 0; run < 3; ++run) {
        std::vector<uint64_t> numbers;
        for (const c10::IValue& made : code->run({x}, 0)) {
            numbers.push_back(made.toTensor().grad_fn()->sequence_nr());
        }
        EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end())) << run << ::testing::PrintToString(numbers);
    }
}

}  // namespace
}  // namespace vpp
