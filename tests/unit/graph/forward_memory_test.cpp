// What ops keep for the backward, and what passes, against figures worked out by hand.
#include "graph/forward_memory.hpp"

#include <gtest/gtest.h>
#include <torch/csrc/jit/ir/irparser.h>

#include <map>
#include <string>
#include <unordered_map>

#include "graph/meta_memory.hpp"
#include "unit/graph/models.hpp"

namespace vpp {
namespace {

using namespace test;

constexpr int64_t kBytes = 3 * 4 * 4;  // of every tensor here

/// By kind of op, of a graph of x: [3, 4] and a parameter w: [4].
std::map<std::string, OpMemory> memory_of(const std::string& ops, const std::string& loss) {
    report_meta_memory();
    JitGraph jit;
    std::unordered_map<std::string, torch::jit::Value*> names;
    jit.graph = std::make_shared<torch::jit::Graph>();
    torch::jit::parseIR("graph(%x : Tensor, %w : Tensor):" + ops + "\n  return (%" + loss + ")", jit.graph.get(), names,
                        /*parse_tensor_constants=*/true);
    jit.loss = names.at(loss);
    list_ops(jit);
    TrialValues given;
    given[names.at("x")] = at::empty({3, 4}, at::kMeta);
    given[names.at("w")] = at::empty({4}, at::kMeta).requires_grad_();
    std::map<std::string, OpMemory> memory;
    const std::vector<OpMemory> by_op = forward_memory(jit, std::move(given), {at::kMeta, at::kMeta, at::kCPU});
    for (size_t i = 0; i < by_op.size(); ++i) memory[jit.ops[i].node->kind().toQualString()] = by_op[i];
    return memory;
}

TEST(ForwardMemory, WhatTheBackwardReadsIsKept) {
    const auto memory = memory_of(R"IR(
  %one : int = prim::Constant[value=1]()
  %y : Tensor = aten::mul(%x, %w)
  %z : Tensor = aten::add(%y, %x, %one)
  %s : Tensor = aten::exp(%z)
  %loss : Tensor = aten::sin(%s))IR",
                                  "loss");
    EXPECT_EQ(memory.at("aten::mul").kept_bytes, 0) << "add reads nothing";
    EXPECT_EQ(memory.at("aten::add").kept_bytes, 0) << "exp reads what it gives";
    EXPECT_EQ(memory.at("aten::exp").kept_bytes, kBytes);
    EXPECT_EQ(memory.at("aten::sin").kept_bytes, kBytes) << "the loss";
}

TEST(ForwardMemory, ValuesPassUntilTheirLastUse) {
    const auto memory = memory_of(R"IR(
  %one : int = prim::Constant[value=1]()
  %y : Tensor = aten::neg(%x)
  %unused : Tensor = aten::abs(%x)
  %z : Tensor = aten::add(%y, %x, %one)
  %s : Tensor = aten::relu(%y)
  %t : Tensor = aten::sub(%z, %s, %one)
  %loss : Tensor = aten::mul(%t, %w))IR",
                                  "loss");
    EXPECT_EQ(memory.at("aten::neg").passing_bytes, kBytes);
    EXPECT_EQ(memory.at("aten::abs").passing_bytes, 2 * kBytes);
    EXPECT_EQ(memory.at("aten::add").passing_bytes, 2 * kBytes) << "y and what it gives; nobody uses the other";
    EXPECT_EQ(memory.at("aten::relu").passing_bytes, 3 * kBytes) << "y goes behind it";
    EXPECT_EQ(memory.at("aten::sub").passing_bytes, 2 * kBytes) << "two go behind it, and the third is kept";
    EXPECT_EQ(memory.at("aten::sub").kept_bytes, kBytes);
    EXPECT_EQ(memory.at("aten::mul").passing_bytes, 0);
}

TEST(ForwardMemory, WhatIsInsideOfAnOpIsTheOps) {
    const auto memory = memory_of(R"IR(
  %p : float = prim::Constant[value=0.5]()
  %yes : bool = prim::Constant[value=1]()
  %y : Tensor = aten::mul(%x, %w)
  %same : Tensor = aten::detach(%y)
  %twice : Tensor = prim::If(%yes)
    block0():
      %inside : Tensor = aten::exp(%y)
      %out : Tensor = aten::mul(%inside, %inside)
      -> (%out)
    block1():
      -> (%y)
  %loss : Tensor = aten::dropout(%twice, %p, %yes))IR",
                                  "loss");
    EXPECT_EQ(memory.at("aten::detach").kept_bytes, 0);
    EXPECT_EQ(memory.at("prim::If").kept_bytes, kBytes) << "the exponential";
    EXPECT_EQ(memory.at("prim::If").inner_bytes, kBytes);
    EXPECT_EQ(memory.at("aten::mul").inner_bytes, 0);
    EXPECT_GT(memory.at("aten::dropout").inner_bytes, 0) << "its mask";
}

TEST(ForwardMemory, ConstantsAreNobodys) {
    const auto memory = memory_of(R"IR(
  %c : Float(4, 3, strides=[3, 1], requires_grad=0, device=cpu) = prim::Constant[value=<Tensor>]()
  %one : int = prim::Constant[value=1]()
  %y : Tensor = aten::mul(%x, %w)
  %part : Tensor = aten::t(%c)
  %loss : Tensor = aten::add(%y, %part, %one))IR",
                                  "loss");
    EXPECT_EQ(memory.at("aten::t").passing_bytes, kBytes) << "y";
    EXPECT_EQ(memory.at("aten::add").passing_bytes, kBytes) << "y";
}

}  // namespace
}  // namespace vpp
