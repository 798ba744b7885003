// What lists share, on graphs written as text.
#include "graph/jit_alias_lists.hpp"

#include <gtest/gtest.h>

#include "alias_text.hpp"

namespace vpp {
namespace {

using test::Facts;

TEST(AliasLists, AListThatOpsReadSharesWithItsElementsAlone) {
    const Facts facts(R"IR(
graph(%x : Tensor, %i : Tensor):
  %one : int = prim::Constant[value=1]()
  %y : Tensor = aten::tanh(%x)
  %l : Tensor[] = prim::ListConstruct(%y, %i)
  %c : Tensor = aten::cat(%l, %one)
  %s : Tensor = aten::stack(%l, %one)
  %o : Tensor?[] = prim::ListConstruct(%i)
  %t : Tensor = aten::index(%y, %o)
  %m : Tensor[] = prim::ListConstruct(%c)
  %u : Tensor = prim::ListUnpack(%m)
  %w : Tensor = aten::relu_(%u)
  return (%s, %t, %w))IR");
    EXPECT_TRUE(facts.shared("l", "y"));
    EXPECT_TRUE(facts.shared("l", "i"));
    EXPECT_TRUE(facts.shared("o", "i"));
    EXPECT_FALSE(facts.shared("o", "y"));
    EXPECT_FALSE(facts.shared("y", "i"));
    // A list that is taken apart is one of those that may hold anything.
    EXPECT_TRUE(facts.written("c"));
    for (const char* name : {"x", "i", "y", "l", "o", "s", "t"}) EXPECT_FALSE(facts.written(name)) << name;
}

TEST(AliasLists, AListThatGrowsByAnotherHoldsItsTensors) {
    const Facts facts(R"IR(
graph(%x : Tensor):
  %one : int = prim::Constant[value=1]()
  %y : Tensor = aten::tanh(%x)
  %z : Tensor = aten::sin(%x)
  %l : Tensor[] = prim::ListConstruct(%y)
  %m : Tensor[] = prim::ListConstruct(%z)
  aten::extend(%l, %m)
  %a : Tensor = aten::__getitem__(%l, %one)
  %w : Tensor = aten::relu_(%a)
  return (%w))IR");
    EXPECT_TRUE(facts.shared("a", "z"));
    EXPECT_TRUE(facts.written("z"));
    EXPECT_FALSE(facts.written("x"));
}

TEST(AliasLists, WhatIsTakenOutOfAListOfViewsSharesWithWhatWasViewed) {
    const Facts facts(R"IR(
graph(%x : Tensor):
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %y : Tensor = aten::tanh(%x)
  %l : Tensor[] = aten::chunk(%y, %two, %one)
  %a : Tensor, %b : Tensor = prim::ListUnpack(%l)
  %z : Tensor = aten::sin(%x)
  %m : Tensor[] = aten::unbind(%z, %one)
  %n : int = aten::len(%m)
  %c : Tensor = aten::__getitem__(%m, %one)
  %w : Tensor = aten::relu_(%c)
  return (%a, %b, %w, %n))IR");
    for (const char* name : {"l", "a", "b"}) EXPECT_TRUE(facts.shared("y", name)) << name;
    EXPECT_TRUE(facts.shared("a", "b"));
    for (const char* name : {"m", "c", "w"}) {
        EXPECT_TRUE(facts.shared("z", name)) << name;
        EXPECT_FALSE(facts.shared("a", name)) << name;
    }
    EXPECT_TRUE(facts.written("c"));
    EXPECT_TRUE(facts.written("z")) << "through a piece of it";
    for (const char* name : {"x", "y", "l", "a", "b"}) EXPECT_FALSE(facts.written(name)) << name;
}

TEST(AliasLists, ViewsOfEachElementShareWithTheirOwn) {
    const Facts facts(R"IR(
graph(%x : Tensor):
  %y : Tensor = aten::tanh(%x)
  %z : Tensor = aten::sin(%x)
  %l : Tensor[] = prim::ListConstruct(%y, %z)
  %m : Tensor[] = aten::broadcast_tensors(%l)
  %a : Tensor, %b : Tensor = prim::ListUnpack(%m)
  %w : Tensor = aten::relu_(%b)
  return (%a, %w))IR");
    EXPECT_TRUE(facts.shared("a", "y"));
    EXPECT_TRUE(facts.shared("b", "z"));
    for (const char* name : {"l", "m"}) EXPECT_TRUE(facts.shared("y", name) && facts.shared("z", name)) << name;
    EXPECT_FALSE(facts.shared("a", "z"));
    EXPECT_FALSE(facts.shared("y", "z"));
    EXPECT_TRUE(facts.written("z"));
    EXPECT_FALSE(facts.written("y"));
    EXPECT_FALSE(facts.written("a"));
}

TEST(AliasLists, AListThatIsGivenOnHoldsAnything) {
    const Facts facts(R"IR(
graph(%x : Tensor):
  %two : int = prim::Constant[value=2]()
  %y : Tensor = aten::tanh(%x)
  %z : Tensor = aten::sin(%x)
  %l : Tensor[] = aten::chunk(%y, %two, %two)
  %m : Tensor[] = prim::ListConstruct(%z)
  %n : Tensor[] = aten::add(%l, %m)
  %c : Tensor = aten::__getitem__(%n, %two)
  %w : Tensor = aten::relu_(%c)
  return (%w))IR");
    EXPECT_TRUE(facts.written("y")) << "through a list of another list's tensors";
    EXPECT_TRUE(facts.written("z"));
    EXPECT_TRUE(facts.shared("c", "y"));
}

}  // namespace
}  // namespace vpp
