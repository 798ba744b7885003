// What an error of the interpreter says of the op that failed.
#include "graph/op_names.hpp"

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <string>

#include "graph/jit_executable.hpp"
#include "unit/graph/ir_text.hpp"

namespace vpp {
namespace {

/// The text of the error that ops, given a matrix of two rows and three columns and a flag, end with.
std::string error_of_ops(const std::string& ops) {
    const test::ParsedGraph parsed = test::parse_graph("graph(%x : Tensor, %flag : bool):\n" + ops);
    const auto& inputs = parsed.jit.graph->inputs();
    const OpRange all{0, static_cast<int>(parsed.jit.ops.size())};
    const auto executable = compile_ops(parsed.jit, all.list(), {inputs[0], inputs[1]}, {parsed.values.at("y")});
    try {
        executable->run({at::ones({2, 3}), true}, 0);
    } catch (const std::exception& error) {
        return error.what();
    }
    return "";
}

TEST(OpNames, AnOpThatFailsIsToldByItsName) {
    const std::string error = error_of_ops(
        "  %s : Tensor = aten::relu(%x)\n"
        "  %y : Tensor = aten::mm(%s, %x)\n  return (%y)");
    EXPECT_EQ(failed_op(error), "the op aten::mm in the model's forward") << error;
}

TEST(OpNames, InABranchItIsTheOpInside) {
    const std::string error = error_of_ops(R"IR(
  %y : Tensor = prim::If(%flag)
    block0():
      %a : Tensor = aten::relu(%x)
      %b : Tensor = aten::mm(%a, %x)
      -> (%b)
    block1():
      -> (%x)
  return (%y))IR");
    EXPECT_EQ(failed_op(error), "the op aten::mm in the model's forward") << error;
}

/// A graph with a warning, which scripted code has at a place of a file.
TEST(OpNames, AWarningKeepsItsPlace) {
    test::ParsedGraph parsed = test::parse_graph(R"IR(
graph(%x : Tensor):
  %text : str = prim::Constant[value="beware"]()
  %level : int = prim::Constant[value=2]()
  aten::warn(%text, %level)
  %y : Tensor = aten::relu(%x)
  return (%y))IR");
    torch::jit::Node* warning = parsed.jit.ops.front().node;
    const auto file = std::make_shared<torch::jit::Source>("warn('beware')", "model.py", 7);
    warning->setSourceRange(torch::jit::SourceRange(file, 0, 4));
    const auto executable = compile_ops(parsed.jit, {0, 1}, {parsed.jit.graph->inputs()[0]}, {parsed.values.at("y")});
    EXPECT_NO_THROW(executable->run({at::ones({2})}, 0));
}

TEST(OpNames, APlaceIsToldWhereItsFileIsKnown) {
    const test::ParsedGraph parsed =
        test::parse_graph("graph(%x : Tensor):\n  %y : Tensor = aten::relu(%x)\n  return (%y)");
    torch::jit::Node* op = parsed.jit.ops.front().node;
    for (const std::string file : {"model.py", ""}) {
        const auto source = std::make_shared<torch::jit::Source>("relu(x)", file, 7);
        op->setSourceRange(torch::jit::SourceRange(source, 0, 4));
        EXPECT_EQ(op_text(parsed.jit, op),
                  "the op aten::relu in the model's forward" + std::string(file.empty() ? "" : " at model.py:7"));
    }
}

TEST(OpNames, AnErrorWithoutAnyHasNone) {
    EXPECT_EQ(failed_op("mat1 and mat2 do not fit"), "");
    EXPECT_EQ(error_of_ops("  %y : Tensor = aten::relu(%x)\n  return (%y)"), "");
}

}  // namespace
}  // namespace vpp
