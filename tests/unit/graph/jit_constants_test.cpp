// Constants: each op has its own tensor.
#include <gtest/gtest.h>
#include <torch/csrc/jit/ir/constants.h>

#include <string>

#include "base/error.hpp"
#include "graph/jit_alias.hpp"
#include "unit/graph/ir_text.hpp"

namespace vpp {
namespace {

constexpr const char* kOneConstant = R"IR(
graph(%x : Tensor):
  %two : int = prim::Constant[value=2]()
  %c : Float(2, strides=[1], requires_grad=0, device=cpu) = prim::Constant[value=<Tensor>]()
  %a : Tensor = aten::mul(%x, %c)
  %list : Tensor[] = prim::ListConstruct(%c, %a)
  %b : Tensor = aten::add(%c, %c, %two)
  return (%list, %b))IR";

TEST(SeparateConstants, EachOpGivesOnATensorOfItsOwn) {
    test::ParsedGraph parsed = test::parse_graph(kOneConstant);
    const auto constant = [&](const char* made, size_t input) {
        return torch::jit::toIValue(parsed.values.at(made)->node()->input(input))->toTensor();
    };
    const at::Tensor shared = constant("a", 1);
    separate_constants(parsed.jit);
    EXPECT_TRUE(constant("a", 1).is_same(shared)) << "where it is used once, nothing changes";
    EXPECT_FALSE(constant("list", 0).is_same(shared));
    EXPECT_FALSE(constant("b", 0).is_same(shared));
    EXPECT_FALSE(constant("b", 0).is_same(constant("list", 0)));
    for (const char* made : {"list", "b"}) EXPECT_TRUE(constant(made, 0).is_alias_of(shared)) << made;
    EXPECT_EQ(parsed.values.at("b")->node()->input(2), parsed.values.at("two"));

    const std::string once = parsed.jit.graph->toString(/*print_source_locations=*/false);
    separate_constants(parsed.jit);
    EXPECT_EQ(parsed.jit.graph->toString(false), once);
}

/// What is said of a model whose ops, two constants at hand, are these; nothing where it is taken.
std::string said_of(const std::string& ops) {
    const test::ParsedGraph parsed = test::parse_graph(std::string(R"IR(
graph(%x : Tensor, %flag : bool):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %c : Float(2, strides=[1], requires_grad=0, device=cpu) = prim::Constant[value=<Tensor>]()
  %d : Float(2, strides=[1], requires_grad=0, device=cpu) = prim::Constant[value=<Tensor>]()
)IR") + ops + "\n  return (%a)");
    try {
        check_constants(parsed.jit, AliasFacts(parsed.jit));
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::BadData);
        return error.what();
    }
    return "";
}

/// The graph behind fold_type_checks, of one op that asks about a value of the type.
std::string answer_to(const std::string& type, const std::vector<c10::TypePtr>& asked) {
    const test::ParsedGraph parsed = test::parse_graph("graph(%x : " + type + "):\n  return (%x)");
    torch::jit::Graph& graph = *parsed.jit.graph;
    torch::jit::Node* ask = graph.appendNode(graph.createIsInstance(parsed.values.at("x"), asked));
    graph.registerOutput(ask->output());
    const bool any = fold_type_checks(graph.block());
    const auto answer = torch::jit::toIValue(graph.outputs()[1]);
    EXPECT_EQ(any, answer.has_value()) << type;
    if (!answer) return "stays";
    return answer->toBool() ? "yes" : "no";
}

TEST(FoldTypeChecks, WhereTheTypeSaysWhatAValueIs) {
    const c10::TypePtr tensor = c10::TensorType::get(), tensors = c10::ListType::ofTensors();
    const c10::TypePtr number = c10::NumberType::get(), maybe = c10::OptionalType::ofTensor();
    EXPECT_EQ(answer_to("Tensor", {tensor}), "yes");
    EXPECT_EQ(answer_to("Tensor", {tensors}), "no");
    EXPECT_EQ(answer_to("Tensor", {tensors, maybe}), "yes");
    EXPECT_EQ(answer_to("Tensor[]", {tensor}), "no");
    EXPECT_EQ(answer_to("Tensor[]", {tensors}), "yes");
    EXPECT_EQ(answer_to("Tensor[]", {c10::AnyListType::get()}), "yes");
    EXPECT_EQ(answer_to("int[]", {tensors}), "no");
    EXPECT_EQ(answer_to("int", {number}), "yes");
    EXPECT_EQ(answer_to("bool", {c10::IntType::get()}), "no");
    EXPECT_EQ(answer_to("str", {c10::StringType::get()}), "yes");
}

TEST(FoldTypeChecks, WhatMayBeNarrowerIsAskedWhenItRuns) {
    const c10::TypePtr tensor = c10::TensorType::get();
    for (const char* type : {"Tensor?", "Any", "(Tensor, int)", "Tensor?[]", "Scalar"}) {
        EXPECT_EQ(answer_to(type, {tensor, c10::IntType::get()}), "stays") << type;
    }
}

TEST(FoldTypeChecks, ATensorIsItself) {
    const auto answer_to = [](const std::string& op, const std::string& type, const char* other) {
        const std::string inputs = "graph(%x : " + type + ", %y : " + type + "):\n";
        const test::ParsedGraph parsed =
            test::parse_graph(inputs + "  %a : bool = aten::" + op + "(%x, %" + other + ")\n  return (%a)");
        if (!fold_type_checks(parsed.jit.graph->block())) return "stays";
        return torch::jit::toIValue(parsed.jit.graph->outputs()[0])->toBool() ? "yes" : "no";
    };
    EXPECT_STREQ(answer_to("__is__", "Tensor", "x"), "yes");
    EXPECT_STREQ(answer_to("__isnot__", "Tensor[]", "x"), "no");
    EXPECT_STREQ(answer_to("__is__", "Tensor", "y"), "stays");
    EXPECT_STREQ(answer_to("__is__", "float", "x"), "stays") << "it may be NaN, which is not itself";
}

constexpr const char* kRefused = "the op aten::add_ in the model's forward writes to a constant";

TEST(CheckConstants, AConstantThatIsWrittenIsRefused) {
    EXPECT_TRUE(said_of("  %a : Tensor = aten::add_(%c, %x, %one)").starts_with(kRefused));
}

TEST(CheckConstants, AViewOfAConstantThatIsWrittenIsRefused) {
    const std::string view = "  %v : Tensor = aten::select(%c, %zero, %zero)\n";
    EXPECT_TRUE(said_of(view + "  %a : Tensor = aten::add_(%v, %x, %one)").starts_with(kRefused));
    EXPECT_EQ(said_of(view + "  %a : Tensor = aten::add(%v, %x, %one)"), "");
}

TEST(CheckConstants, AWriteInABranchIsFound) {
    const std::string said = said_of(R"IR(
  %v : Tensor = aten::select(%c, %zero, %zero)
  %a : Tensor = prim::If(%flag)
    block0():
      %b : Tensor = aten::add_(%v, %x, %one)
      -> (%b)
    block1():
      -> (%x))IR");
    EXPECT_TRUE(said.starts_with(kRefused)) << said;
}

TEST(CheckConstants, WhatIsMadeOfConstantsMayBeWritten) {
    EXPECT_EQ(said_of("  %s : Tensor = aten::add(%c, %d, %one)\n  %a : Tensor = aten::add_(%s, %c, %one)"), "");
}

TEST(CheckConstants, AListOfConstantsThatIsReadIsNoWrite) {
    EXPECT_EQ(said_of("  %list : Tensor[] = prim::ListConstruct(%c, %d)\n"
                      "  %s : Tensor = aten::cat(%list, %zero)\n  %a : Tensor = aten::add_(%s, %x, %one)"),
              "");
}

}  // namespace
}  // namespace vpp
