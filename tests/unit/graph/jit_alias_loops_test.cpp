// What loops give on, on graphs written as text, and cuts beside such loops.
#include "graph/jit_alias_loops.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/graph/alias_text.hpp"
#include "unit/graph/cut_verdict.hpp"

namespace vpp {
namespace {

using namespace test;
using ::testing::HasSubstr;

/// Facts of a loop over two tensors; `round` ends with what it gives, and `%w` is written behind it.
Facts facts_of(const std::string& round, const std::string& written) {
    return Facts(R"IR(
graph(%x : Tensor, %n : int):
  %yes : bool = prim::Constant[value=1]()
  %a : Tensor = aten::tanh(%x)
  %b : Tensor = aten::cos(%x)
  %p : Tensor, %q : Tensor = prim::Loop(%n, %yes, %a, %b)
    block0(%i : int, %c : Tensor, %d : Tensor):
)IR" + round + "\n  %w : Tensor = aten::relu_(%" +
                 written + ")\n  return (%w)");
}

TEST(AliasLoops, ALoopThatIsNotRunGivesOnWhatItWasGiven) {
    const Facts facts = facts_of(R"IR(      %s : Tensor = aten::sin(%c)
      %t : Tensor = aten::sin(%d)
      -> (%yes, %s, %t))IR",
                                 "p");
    EXPECT_TRUE(facts.shared("p", "a"));
    EXPECT_TRUE(facts.written("a"));
    for (const char* name : {"b", "q"}) {
        EXPECT_FALSE(facts.shared("p", name)) << name;
        EXPECT_FALSE(facts.written(name)) << name;
    }
}

TEST(AliasLoops, WhatARoundGivesOnInAnotherPlaceMayBeEither) {
    const Facts facts = facts_of(R"IR(      %s : Tensor = aten::sin(%d)
      -> (%yes, %d, %s))IR",
                                 "p");
    for (const char* name : {"a", "b", "q"}) {
        EXPECT_TRUE(facts.shared("p", name)) << name;
        EXPECT_TRUE(facts.written(name)) << name;
    }
    EXPECT_FALSE(facts.shared("q", "a"));
}

TEST(AliasLoops, AWriteInARoundIsOneToWhatAnEarlierRoundGaveOn) {
    const Facts facts = facts_of(R"IR(      %s : Tensor = aten::relu_(%c)
      -> (%yes, %d, %s))IR",
                                 "x");
    EXPECT_TRUE(facts.written("a"));
    EXPECT_TRUE(facts.written("b"));
}

TEST(AliasLoops, SoDoesOneOverATuple) {
    const Facts facts(R"IR(
graph(%x : Tensor, %n : int):
  %yes : bool = prim::Constant[value=1]()
  %a : Tensor = aten::tanh(%x)
  %b : Tensor = aten::cos(%x)
  %o : Tensor = aten::sin(%x)
  %l : (Tensor, Tensor) = prim::TupleConstruct(%a, %b)
  %m : (Tensor, Tensor) = prim::Loop(%n, %yes, %l)
    block0(%i : int, %c : (Tensor, Tensor)):
      %s : Tensor = aten::sin(%x)
      %t : Tensor = aten::sin(%x)
      %e : (Tensor, Tensor) = prim::TupleConstruct(%s, %t)
      -> (%yes, %e)
  %p : Tensor, %q : Tensor = prim::TupleUnpack(%m)
  %w : Tensor = aten::relu_(%p)
  return (%w, %q))IR");
    EXPECT_TRUE(facts.shared("p", "a"));
    EXPECT_TRUE(facts.written("a"));
    EXPECT_FALSE(facts.written("o"));
}

/// Why there is no cut between a loop of `n` rounds, which is run here, and what reads `y` and what it gives.
std::string reason_behind_loop(const std::string& y, const std::string& write) {
    ModuleSpec spec{"Model", "def forward(self, x):\n    n = int(x.sum() > -1000.)\n    y = torch.tanh(" + y +
                                 ")\n    u = y\n    for k in range(n):\n        u = torch.cos(u)\n"
                                 "    s = torch.sin(x)\n" +
                                 write + "    return torch.mean(u * s * self.w) + torch.mean(y)\n"};
    spec.parameters = {{"w", weight({4})}};
    LoadedModel model = load(spec, kRuleOptions);
    EXPECT_GT(verdict_of(model).legal, 0);
    return reason_at(model.graph, op_of(model.graph, "aten::sin"));
}

TEST(AliasLoops, ACutDoesNotPartWhatALoopGivesFromWhatItMayHaveGivenOn) {
    EXPECT_THAT(reason_behind_loop("x * self.w", ""), HasSubstr("may be the same tensor"));
    EXPECT_THAT(reason_behind_loop("x", "    u.add_(1.0)\n"), HasSubstr("may share memory"));
    EXPECT_EQ(reason_behind_loop("x", ""), "");
}

}  // namespace
}  // namespace vpp
