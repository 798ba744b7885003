// The op list and what an op uses, on graphs written as text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/ir/irparser.h>

#include <unordered_map>

#include "graph/jit_graph.hpp"
#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using test::refusal;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct ParsedOps {
    JitGraph jit;
    std::unordered_map<std::string, torch::jit::Value*> values;
};

ParsedOps parse_ops(const std::string& text) {
    ParsedOps parsed;
    parsed.jit.graph = std::make_shared<torch::jit::Graph>();
    torch::jit::parseIR(text, parsed.jit.graph.get(), parsed.values);
    list_ops(parsed.jit);
    return parsed;
}

/// The names that the text gives to what an op uses.
std::vector<std::string> used_names(const ParsedOps& parsed, size_t op) {
    std::vector<std::string> names;
    for (const torch::jit::Value* value : values_used(parsed.jit.ops.at(op).node)) {
        for (const auto& [name, known] : parsed.values) {
            if (known == value) names.push_back(name);
        }
    }
    return names;
}

constexpr const char* kLoop = R"IR(
graph(%x : Tensor, %w : Tensor, %n : int):
  %true : bool = prim::Constant[value=1]()
  %one : int = prim::Constant[value=1]()
  %y : Tensor = aten::relu(%x)
  %z : Tensor = prim::Loop(%n, %true, %y)
    block0(%i : int, %carried : Tensor):
      %p : Tensor = aten::mul(%carried, %w)
      %c : bool = aten::gt(%i, %n)
      %q : Tensor = prim::If(%c)
        block0():
          %r : Tensor = aten::add(%p, %x, %one)
          -> (%r)
        block1():
          -> (%w)
      -> (%true, %q)
  return (%z))IR";

TEST(JitOps, ConstantsAreNoOpsAndControlFlowIsOne) {
    const JitGraph jit = parse_ops(kLoop).jit;
    ASSERT_EQ(jit.ops.size(), 2U);
    EXPECT_EQ(jit.ops[0].node->kind(), torch::jit::aten::relu);
    EXPECT_EQ(jit.ops[1].node->kind(), torch::jit::prim::Loop);
    EXPECT_EQ(jit.ops[1].random_site, -1);
}

TEST(JitOps, WhatAnOpUsesComesFromOutsideOfItsBlocksToo) {
    const ParsedOps parsed = parse_ops(kLoop);
    EXPECT_THAT(used_names(parsed, 0), ElementsAre("x"));
    EXPECT_THAT(used_names(parsed, 1), ElementsAre("n", "y", "w", "x")) << "each once, in order of use";
}

TEST(JitOps, WhatOnlyReseedsUseIsLeftOut) {
    ParsedOps parsed = parse_ops(R"IR(
graph(%x : Tensor, %c : bool):
  %p : float = prim::Constant[value=0.5]()
  %true : bool = prim::Constant[value=1]()
  %z : Tensor = prim::If(%c)
    block0():
      %d : Tensor = aten::dropout(%x, %p, %true)
      -> (%d)
    block1():
      -> (%x)
  return (%z))IR");
    insert_reseeds(parsed.jit);
    EXPECT_EQ(parsed.jit.num_sites, 1);
    EXPECT_THAT(used_names(parsed, 0), ElementsAre("c", "x")) << "not the key and the counts";
    EXPECT_EQ(values_used(parsed.jit.ops[0].node).size(), 2U);
}

TEST(JitOps, AValueUsedTwiceIsListedOnce) {
    const ParsedOps parsed = parse_ops("graph(%x : Tensor):\n  %y : Tensor = aten::mul(%x, %x)\n  return (%y)");
    EXPECT_THAT(used_names(parsed, 0), ElementsAre("x"));
}

TEST(JitOps, GradientsBesideThoseOfTheStepAreRefused) {
    const std::string adds = refusal(ErrorKind::BadData, [] {
        parse_ops(R"IR(
graph(%x : Tensor):
  %none : NoneType = prim::Constant()
  %true : bool = prim::Constant[value=1]()
  aten::backward(%x, %none, %true, %true)
  return (%x))IR");
    });
    EXPECT_THAT(adds, HasSubstr("the op aten::backward in the model's forward adds to the .grad of tensors"));
    const std::string reads = refusal(ErrorKind::BadData, [] {
        parse_ops(R"IR(
graph(%x : Tensor, %c : bool):
  %none : NoneType = prim::Constant()
  %z : Tensor? = prim::If(%c)
    block0():
      %g : Tensor = prim::grad(%x)
      -> (%g)
    block1():
      -> (%none)
  return (%z))IR");
    });
    EXPECT_THAT(reads, HasSubstr("the op prim::grad in the model's forward reads the .grad of tensors"));
}

TEST(JitOps, GeneratorsOfTheModelsOwnAreRefused) {
    const std::string seeds = "torch.manual_seed(3)\n    return torch.mean(torch.dropout(x, 0.5, True))\n";
    const std::string branch = "if bool(x.sum() > 0):\n        torch.manual_seed(3)\n    return torch.mean(x)\n";
    for (const std::string& code : {seeds, branch}) {
        const std::string text = refusal(ErrorKind::BadData, [&] {
            test::load({"Model", "def forward(self, x):\n    " + code}, test::options_for({test::floats("x", {4})}));
        });
        EXPECT_THAT(text, HasSubstr("the op aten::manual_seed in the model's forward")) << code;
        EXPECT_THAT(text, HasSubstr("seeds or uses a generator of random numbers")) << code;
    }
}

}  // namespace
}  // namespace vpp
