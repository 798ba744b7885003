// Constants: each op has its own tensor.
#include <gtest/gtest.h>
#include <torch/csrc/jit/ir/constants.h>

#include <string>

#include "base/error.hpp"
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

TEST(SeparateConstants, AConstantThatIsWrittenIsRefused) {
    test::ParsedGraph parsed = test::parse_graph(R"IR(
graph(%x : Tensor):
  %one : int = prim::Constant[value=1]()
  %c : Float(2, strides=[1], requires_grad=0, device=cpu) = prim::Constant[value=<Tensor>]()
  %a : Tensor = aten::add_(%c, %x, %one)
  return (%a))IR");
    try {
        separate_constants(parsed.jit);
        ADD_FAILURE() << "it was taken";
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::BadData);
        EXPECT_EQ(std::string(error.what()).rfind("the op aten::add_ in the model's forward writes to a constant", 0),
                  0U)
            << error.what();
    }
}

}  // namespace
}  // namespace vpp
