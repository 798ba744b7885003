// Alias facts on graphs written as text.
#include "graph/jit_alias.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "alias_text.hpp"
#include "ir_text.hpp"

namespace vpp {
namespace {

using test::Facts;

TEST(AliasFacts, InputsShareWithNothing) {
    const Facts facts(R"IR(
graph(%x : Tensor, %w : Tensor):
  %y : Tensor = aten::relu_(%w)
  %z : Tensor = aten::mul(%x, %y)
  return (%z))IR");
    EXPECT_FALSE(facts.shared("x", "w"));
    EXPECT_TRUE(facts.shared("w", "y"));
    EXPECT_TRUE(facts.shared("x", "x"));
    EXPECT_TRUE(facts.written("w"));
    EXPECT_FALSE(facts.written("x")) << "a write to w says nothing about x";
    EXPECT_FALSE(facts.written("z"));
}

TEST(AliasFacts, ViewsShareWithTheirBase) {
    const Facts facts(R"IR(
graph(%x : Tensor):
  %one : int = prim::Constant[value=1]()
  %y : Tensor = aten::tanh(%x)
  %v : Tensor = aten::t(%y)
  %u : Tensor = aten::t(%v)
  %w : Tensor = aten::relu_(%u)
  %z : Tensor = aten::add(%y, %x, %one)
  return (%z))IR");
    EXPECT_TRUE(facts.shared("y", "u"));
    EXPECT_FALSE(facts.shared("x", "y"));
    EXPECT_TRUE(facts.written("y")) << "through a view of a view";
    EXPECT_FALSE(facts.written("x"));
    EXPECT_TRUE(facts.writes(3, "y"));
    EXPECT_FALSE(facts.writes(1, "y"));
    EXPECT_FALSE(facts.writes(3, "x"));
}

TEST(AliasFacts, AListSharesWithItsElements) {
    const Facts facts(R"IR(
graph(%x : Tensor):
  %y : Tensor = aten::tanh(%x)
  %z : Tensor = aten::tanh(%x)
  %l : Tensor[] = prim::ListConstruct()
  %m : Tensor[] = aten::append(%l, %y)
  %o : Tensor = aten::tanh(%z)
  return (%o, %l))IR");
    EXPECT_TRUE(facts.shared("l", "y"));
    EXPECT_TRUE(facts.written("l"));
    EXPECT_TRUE(facts.writes(3, "l"));
    EXPECT_FALSE(facts.shared("z", "l"));
    EXPECT_FALSE(facts.written("z"));
}

constexpr const char* kBatchNorm = R"IR(
graph(%x : Tensor, %w : Tensor, %b : Tensor, %mean : Tensor, %var : Tensor):
  %training : bool = prim::Constant[value=TRAINING]()
  %cudnn : bool = prim::Constant[value=0]()
  %momentum : float = prim::Constant[value=0.1]()
  %eps : float = prim::Constant[value=1e-05]()
  %y : Tensor = aten::batch_norm(%x, %w, %b, %mean, %var, %training, %momentum, %eps, %cudnn)
  return (%y))IR";

std::string batch_norm_code(bool training) {
    std::string text = kBatchNorm;
    return text.replace(text.find("TRAINING"), 8, training ? "1" : "0");
}

TEST(AliasFacts, BatchNormWritesItsStatisticsThoughItsSchemaIsSilent) {
    const Facts training(batch_norm_code(true)), evaluation(batch_norm_code(false));
    for (const char* name : {"mean", "var"}) {
        EXPECT_TRUE(training.written(name));
        EXPECT_TRUE(training.writes(0, name));
        EXPECT_FALSE(evaluation.written(name));
        EXPECT_FALSE(evaluation.writes(0, name));
    }
    for (const char* name : {"x", "w", "b", "y"}) EXPECT_FALSE(training.written(name)) << name;
    EXPECT_EQ(training.writing_ops(), "1");
    EXPECT_EQ(evaluation.writing_ops(), "0");
}

TEST(AliasFacts, StatisticsInAListAreWrittenToo) {
    const Facts facts(R"IR(
graph(%x : Tensor, %w : Tensor, %b : Tensor, %mean : Tensor, %var : Tensor):
  %on : bool = prim::Constant[value=1]()
  %momentum : float = prim::Constant[value=0.1]()
  %l : Tensor[] = prim::ListConstruct(%mean)
  %y : Tensor = aten::batch_norm(%x, %w, %b, %mean, %var, %on, %momentum, %momentum, %on)
  return (%y, %l))IR");
    EXPECT_TRUE(facts.written("l"));
    EXPECT_TRUE(facts.writes(1, "l"));
}

TEST(AliasFacts, AnOpThatWritesTheTensorsOfAListWritesThoseWhoShareThem) {
    const Facts facts(R"IR(
graph(%x : Tensor, %c : bool):
  %zero : int = prim::Constant[value=0]()
  %half : float = prim::Constant[value=0.5]()
  %y : Tensor = aten::tanh(%x)
  %z : Tensor = aten::sin(%x)
  %o : Tensor = aten::cos(%x)
  %v : Tensor = aten::select(%y, %zero, %zero)
  %l : Tensor[] = prim::ListConstruct(%y, %z)
  prim::If(%c)
    block0():
      aten::_foreach_mul_(%l, %half)
      -> ()
    block1():
      -> ()
  return (%y, %z, %o, %v))IR");
    for (const char* name : {"y", "z", "v"}) {
        EXPECT_TRUE(facts.written(name)) << name;
        EXPECT_TRUE(facts.writes(5, name)) << name;
    }
    EXPECT_FALSE(facts.written("o"));
    EXPECT_FALSE(facts.writes(5, "o"));
}

TEST(AliasFacts, FewOpsMayWriteAtAll) {
    const Facts facts(R"IR(
graph(%x : Tensor, %c : bool):
  %one : int = prim::Constant[value=1]()
  %y : Tensor = aten::tanh(%x)
  %v : Tensor = aten::t(%y)
  %w : Tensor = aten::relu_(%v)
  %l : Tensor[] = prim::ListConstruct(%y)
  %s : Tensor = aten::stack(%l, %one)
  %z : Tensor = prim::If(%c)
    block0():
      -> (%w)
    block1():
      -> (%s)
  %e : Tensor = aten::add(%z, %x, %one)
  return (%e))IR");
    // Constants are no ops. Of a list and of blocks it is not known: may_write is asked.
    EXPECT_EQ(facts.writing_ops(), "0010110");
    for (size_t op : {0, 1, 3, 6}) {
        for (const char* name : {"x", "y", "v", "w", "l", "s", "z", "e"}) EXPECT_FALSE(facts.writes(op, name));
    }
}

TEST(AliasFacts, WritesInsideControlFlowCount) {
    const Facts facts(R"IR(
graph(%x : Tensor, %c : bool):
  %y : Tensor = aten::tanh(%x)
  %z : Tensor = prim::If(%c)
    block0():
      %v : Tensor = aten::relu_(%y)
      -> (%v)
    block1():
      -> (%x)
  return (%z))IR");
    EXPECT_TRUE(facts.written("y"));
    EXPECT_TRUE(facts.writes(1, "y"));
    EXPECT_TRUE(facts.shared("z", "y"));
    EXPECT_TRUE(facts.shared("z", "x"));
}

TEST(AliasFacts, WhatARunSawIsSharedThoughNoSchemaSaysSo) {
    Facts facts(R"IR(
graph(%x : Tensor, %w : Tensor):
  %how : str = prim::Constant[value="ij->ji"]()
  %none : NoneType = prim::Constant()
  %y : Tensor = aten::tanh(%x)
  %l : Tensor[] = prim::ListConstruct(%y)
  %e : Tensor = aten::einsum(%how, %l, %none)
  %v : Tensor = aten::t(%e)
  %z : Tensor = aten::relu_(%y)
  return (%v, %z))IR");
    EXPECT_FALSE(facts.shared("e", "y")) << "LibTorch's analysis alone";
    EXPECT_FALSE(facts.written("e"));
    facts.learn({{"y", "l", "e", "v", "z"}, {"w"}});
    for (const char* name : {"l", "e", "v", "z"}) EXPECT_TRUE(facts.shared("y", name)) << name;
    EXPECT_FALSE(facts.shared("w", "e"));
    EXPECT_FALSE(facts.shared("x", "e"));
    EXPECT_TRUE(facts.written("e"));
    EXPECT_TRUE(facts.written("v"));
    EXPECT_TRUE(facts.writes(4, "v"));
    EXPECT_FALSE(facts.writes(2, "v"));
    EXPECT_FALSE(facts.in_container("e"));
    facts.learn({{"w", "l"}});
    EXPECT_TRUE(facts.shared("w", "l"));
    EXPECT_FALSE(facts.shared("w", "y")) << "they are in one list, each in memory of its own";
}

TEST(InputsWritten, BySchemaAsStatisticsOrAsWhatIsReached) {
    const test::ParsedGraph parsed = test::parse_graph(R"IR(
graph(%x : Tensor, %w : Tensor, %m : Tensor, %v : Tensor):
  %one : int = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %yes : bool = prim::Constant[value=1]()
  %no : bool = prim::Constant[value=0]()
  %f : float = prim::Constant[value=0.1]()
  %read : Tensor = aten::add(%x, %w, %one)
  %put : Tensor = aten::add_(%x, %w, %one)
  %list : Tensor[] = prim::ListConstruct(%x)
  %longer : Tensor[] = aten::append(%list, %w)
  %tracked : Tensor = aten::batch_norm(%x, %none, %none, %m, %v, %yes, %f, %f, %no)
  %fixed : Tensor = aten::batch_norm(%x, %none, %none, %m, %v, %no, %f, %f, %no)
  return (%read))IR");
    const auto value = [&](const char* name) { return parsed.values.at(name); };
    const auto maker = [&](const char* name) { return value(name)->node(); };
    using ::testing::ElementsAre;
    using ::testing::IsEmpty;
    EXPECT_THAT(inputs_written(maker("read")), IsEmpty());
    EXPECT_THAT(inputs_written(maker("put")), ElementsAre(value("x")));
    EXPECT_THAT(inputs_written(maker("longer")), ElementsAre(value("list")));
    EXPECT_THAT(inputs_written(maker("tracked")), ElementsAre(value("m"), value("v")));
    EXPECT_THAT(inputs_written(maker("fixed")), IsEmpty());
    const torch::jit::Node* print = parsed.jit.graph->create(torch::jit::prim::Print, {value("x")}, /*num_outputs=*/0);
    EXPECT_THAT(inputs_written(print), ElementsAre(value("x"))) << "whatever it reaches";

    EXPECT_TRUE(gives_what_it_writes(maker("put")));
    EXPECT_FALSE(gives_what_it_writes(maker("read")));
    EXPECT_FALSE(gives_what_it_writes(maker("longer"))) << "no tensor";
    EXPECT_FALSE(gives_what_it_writes(maker("tracked")));
}

}  // namespace
}  // namespace vpp
