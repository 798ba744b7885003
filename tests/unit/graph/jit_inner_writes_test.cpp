// What branches and loops write of what they were given, on graphs written as text.
#include "graph/jit_inner_writes.hpp"

#include <gtest/gtest.h>

#include <set>

#include "ir_text.hpp"

namespace vpp {
namespace {

/// Names of what the last op of a graph may write in its blocks.
std::set<std::string> written_by(const std::string& op) {
    const test::ParsedGraph parsed = test::parse_graph(R"IR(
graph(%x : Tensor, %y : Tensor, %z : Tensor, %c : bool):
  %one : int = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
)IR" + op + "\n  return (%out)");
    std::set<std::string> names;
    for (const torch::jit::Value* value : outer_values_written(parsed.jit.ops.back().node)) {
        names.insert(value->debugName());
    }
    return names;
}

TEST(InnerWrites, OnEitherWayByAViewOrInABranchInside) {
    EXPECT_EQ(written_by(R"IR(
  %out : Tensor = prim::If(%c)
    block0():
      %v : Tensor = aten::select(%x, %zero, %zero)
      %w : Tensor = aten::add_(%v, %y, %one)
      -> (%w)
    block1():
      %i : Tensor = prim::If(%c)
        block0():
          %u : Tensor = aten::relu_(%z)
          -> (%u)
        block1():
          -> (%y)
      -> (%i))IR"),
              (std::set<std::string>{"x", "z"}));
}

TEST(InnerWrites, WhatIsMadeInsideIsNoMatter) {
    EXPECT_EQ(written_by(R"IR(
  %out : Tensor = prim::If(%c)
    block0():
      %s : Tensor = aten::sin(%x)
      %w : Tensor = aten::add_(%s, %y, %one)
      -> (%w)
    block1():
      -> (%y))IR"),
              std::set<std::string>{});
}

TEST(InnerWrites, ALoopWritesWhatItCarriesAndWhatItTurnsThatInto) {
    EXPECT_EQ(written_by(R"IR(
  %out : Tensor = prim::Loop(%one, %c, %x)
    block0(%i : int, %held : Tensor):
      %w : Tensor = aten::add_(%held, %z, %one)
      -> (%c, %y))IR"),
              (std::set<std::string>{"x", "y"}));
}

TEST(InnerWrites, WhatABranchInsideGivesIsEitherOne) {
    EXPECT_EQ(written_by(R"IR(
  %out : Tensor = prim::If(%c)
    block0():
      %i : Tensor = prim::If(%c)
        block0():
          -> (%x)
        block1():
          -> (%y)
      %w : Tensor = aten::relu_(%i)
      -> (%w)
    block1():
      -> (%z))IR"),
              (std::set<std::string>{"x", "y"}));
}

}  // namespace
}  // namespace vpp
