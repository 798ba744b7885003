#include "graph/value_sets.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir_text.hpp"

namespace vpp {
namespace {

using ::testing::UnorderedElementsAre;

TEST(ValueSets, WhatIsJoinedHasOneThatStandsForIt) {
    const test::ParsedGraph parsed = test::parse_graph(R"IR(
graph(%a : Tensor, %b : Tensor, %c : Tensor, %d : Tensor):
  return (%a))IR");
    const auto value = [&](const char* name) { return parsed.values.at(name); };
    ValueSets sets;
    sets.join(value("a"), value("b"));
    sets.join(value("c"), value("d"));
    EXPECT_EQ(sets.find(value("a")), sets.find(value("b")));
    EXPECT_NE(sets.find(value("a")), sets.find(value("c")));
    sets.join(value("b"), value("d"));
    EXPECT_EQ(sets.find(value("a")), sets.find(value("c")));
}

TEST(ValueSets, AnOpTouchesWhatTheOpsInsideOfItTouch) {
    const test::ParsedGraph parsed = test::parse_graph(R"IR(
graph(%a : Tensor, %b : Tensor, %n : int, %p : bool):
  %made : Tensor = prim::If(%p)
    block0():
      %s : Tensor = aten::sin(%a)
      -> (%s)
    block1():
      -> (%b)
  return (%made))IR");
    const auto value = [&](const char* name) { return parsed.values.at(name); };
    std::vector<const torch::jit::Value*> touched = values_touched(parsed.jit.ops.at(0).node);
    std::ranges::sort(touched);
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    EXPECT_THAT(touched, UnorderedElementsAre(value("a"), value("b"), value("s"), value("made")));
}

TEST(ValueSets, AnOpThatMayGiveAViewJoinsWhatItTouches) {
    const test::ParsedGraph parsed = test::parse_graph(R"IR(
graph(%a : Tensor, %b : Tensor):
  %view : Tensor = aten::t(%a)
  %made : Tensor = aten::sin(%b)
  return (%made))IR");
    const auto value = [&](const char* name) { return parsed.values.at(name); };
    ValueSets sets;
    for (const JitOp& op : parsed.jit.ops) join_memory(op.node, values_touched(op.node), sets);
    EXPECT_EQ(sets.find(value("a")), sets.find(value("view")));
    EXPECT_NE(sets.find(value("b")), sets.find(value("made")));
}

}  // namespace
}  // namespace vpp
