// Traced convolutions get the names of the ops that models call, with their arguments in order.
#include <gtest/gtest.h>

#include "ir_text.hpp"

namespace vpp {
namespace {

/// A graph with one traced convolution in `dimensions`.
test::ParsedGraph traced(const std::string& transposed, const std::string& dimensions) {
    return test::parse_graph(R"IR(
graph(%x : Tensor, %w : Tensor, %b : Tensor, %groups : int, %f : bool):
  %n : int = prim::Constant[value=1]()
  %transposed : bool = prim::Constant[value=)IR" +
                             transposed + R"IR(]()
  %stride : int[] = prim::ListConstruct()IR" +
                             dimensions + R"IR()
  %padding : int[] = prim::ListConstruct()IR" +
                             dimensions + R"IR()
  %dilation : int[] = prim::ListConstruct()IR" +
                             dimensions + R"IR()
  %more : int[] = prim::ListConstruct()IR" +
                             dimensions + R"IR()
  %y : Tensor = aten::_convolution(%x, %w, %b, %stride, %padding, %dilation, %transposed, %more, %groups, %f, %f, %f)
  return (%y))IR");
}

/// "aten::conv2d x w b stride ...": the op that the graph returns, by the names of the text.
std::string op_text(const test::ParsedGraph& parsed) {
    const torch::jit::Node* node = parsed.jit.graph->outputs()[0]->node();
    std::string text = node->kind().toQualString();
    for (const torch::jit::Value* input : node->inputs()) {
        for (const auto& [name, value] : parsed.values) {
            if (value == input) text += " " + name;
        }
    }
    return text;
}

TEST(Convolutions, AreNamedByDimensionsAndDirection) {
    const std::pair<std::string, std::string> forms[] = {{"%n", "1d"}, {"%n, %n", "2d"}, {"%n, %n, %n", "3d"}};
    for (const auto& [list, name] : forms) {
        test::ParsedGraph plain = traced("0", list), transposed = traced("1", list);
        name_convolutions(plain.jit);
        name_convolutions(transposed.jit);
        EXPECT_EQ(op_text(plain), "aten::conv" + name + " x w b stride padding dilation groups");
        EXPECT_EQ(op_text(transposed), "aten::conv_transpose" + name + " x w b stride padding more groups dilation");
        plain.jit.graph->lint();
        for (const test::ParsedGraph* parsed : {&plain, &transposed}) {
            EXPECT_NE(parsed->jit.graph->outputs()[0]->node()->maybeOperator(), nullptr) << "LibTorch has such an op";
        }
    }
}

TEST(Convolutions, APaddingByItsWordIsNamedToo) {
    test::ParsedGraph parsed = test::parse_graph(R"IR(
graph(%x : Tensor, %w : Tensor, %b : Tensor, %groups : int):
  %stride : int[] = prim::Constant[value=[1, 1]]()
  %same : str = prim::Constant[value="same"]()
  %y : Tensor = aten::_convolution_mode(%x, %w, %b, %stride, %same, %stride, %groups)
  return (%y))IR");
    name_convolutions(parsed.jit);
    EXPECT_EQ(op_text(parsed), "aten::conv2d x w b stride same stride groups");
    EXPECT_NE(parsed.jit.graph->outputs()[0]->node()->maybeOperator(), nullptr);
}

TEST(Convolutions, StayWhereTheirDimensionsAreNotKnown) {
    test::ParsedGraph parsed = traced("0", "%n, %n, %n, %n");
    name_convolutions(parsed.jit);
    EXPECT_EQ(op_text(parsed).substr(0, 18), "aten::_convolution");
}

TEST(Convolutions, AreFoundInsideControlFlow) {
    test::ParsedGraph parsed = test::parse_graph(R"IR(
graph(%x : Tensor, %w : Tensor, %c : bool, %groups : int):
  %none : NoneType = prim::Constant()
  %no : bool = prim::Constant[value=0]()
  %one : int[] = prim::Constant[value=[1]]()
  %y : Tensor = prim::If(%c)
    block0():
      %z : Tensor = aten::_convolution(%x, %w, %none, %one, %one, %one, %no, %one, %groups, %no, %no, %no)
      -> (%z)
    block1():
      -> (%x)
  return (%y))IR");
    name_convolutions(parsed.jit);
    const torch::jit::Node* choice = parsed.jit.graph->outputs()[0]->node();
    EXPECT_EQ(std::string(choice->blocks()[0]->outputs()[0]->node()->kind().toQualString()), "aten::conv1d");
}

}  // namespace
}  // namespace vpp
