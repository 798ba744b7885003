// Which control flow follows the data, on graphs written as text.
#include "graph/jit_branches.hpp"

#include <gtest/gtest.h>

#include "ir_text.hpp"

namespace vpp {
namespace {

/// Whether the last op of a graph does: `%c` is what `condition` sets.
bool follows(const std::string& condition) {
    const test::ParsedGraph parsed = test::parse_graph(R"IR(
graph(%x : Tensor, %flag : bool):
  %three : int = prim::Constant[value=3]()
  %none : NoneType = prim::Constant()
  %yes : bool = prim::Constant[value=1]()
)IR" + condition + R"IR(
  %y : Tensor = prim::If(%c)
    block0():
      %s : Tensor = aten::sin(%x)
      -> (%s)
    block1():
      -> (%x)
  return (%y))IR");
    return follows_data(parsed.jit.ops.back().node);
}

TEST(Branches, RanksDtypesAndConstantsAreFixed) {
    EXPECT_FALSE(follows("  %r : int = aten::dim(%x)\n  %c : bool = aten::eq(%r, %three)"));
    EXPECT_FALSE(
        follows("  %l : int[] = prim::ListConstruct(%three)\n  %r : int = aten::dim(%x)\n"
                "  %c : bool = aten::__contains__(%l, %r)"));
    EXPECT_FALSE(follows("  %c : bool = aten::is_floating_point(%x)"));
    EXPECT_FALSE(follows("  %c : bool = aten::__not__(%yes)"));
}

TEST(Branches, NumbersSizesAndWhatComesFromOutsideFollowTheData) {
    EXPECT_TRUE(follows("  %t : Tensor = aten::sum(%x, %none)\n  %c : bool = aten::Bool(%t)"));
    EXPECT_TRUE(follows("  %r : int = aten::numel(%x)\n  %c : bool = aten::eq(%r, %three)"))
        << "of a selection it follows the numbers";
    EXPECT_TRUE(follows("  %c : bool = aten::__not__(%flag)"));
}

// Where ops are tried the device is another than where they run.
TEST(Branches, ADeviceThatIsNotKnownFollowsTheData) {
    EXPECT_TRUE(follows("  %d : Device = prim::device(%x)\n  %c : bool = aten::eq(%d, %d)"));
    EXPECT_TRUE(follows("  %c : bool = prim::is_cuda(%x)"));
}

TEST(Branches, AnOpWithoutBlocksDoesNot) {
    const test::ParsedGraph parsed = test::parse_graph(R"IR(
graph(%x : Tensor):
  %y : Tensor = aten::nonzero(%x)
  return (%y))IR");
    EXPECT_FALSE(follows_data(parsed.jit.ops.back().node));
}

bool loop_follows(const std::string& trips, const std::string& go_on) {
    const test::ParsedGraph parsed = test::parse_graph(R"IR(
graph(%x : Tensor, %n : int):
  %three : int = prim::Constant[value=3]()
  %none : NoneType = prim::Constant()
  %yes : bool = prim::Constant[value=1]()
  %y : Tensor = prim::Loop()IR" + trips + R"IR(, %yes, %x)
    block0(%i : int, %h : Tensor):
      %t : Tensor = aten::sum(%h, %none)
      %more : bool = aten::Bool(%t)
      %z : Tensor = aten::sin(%h)
      -> ()IR" + go_on + R"IR(, %z)
  return (%y))IR");
    return follows_data(parsed.jit.ops.back().node);
}

TEST(Branches, ALoopIsFixedWhereItsTripsAndItsConditionAre) {
    EXPECT_FALSE(loop_follows("%three", "%yes"));
    EXPECT_TRUE(loop_follows("%n", "%yes"));
    EXPECT_TRUE(loop_follows("%three", "%more"));
}

TEST(Branches, ABranchInsideCounts) {
    const test::ParsedGraph parsed = test::parse_graph(R"IR(
graph(%x : Tensor, %n : int):
  %three : int = prim::Constant[value=3]()
  %yes : bool = prim::Constant[value=1]()
  %y : Tensor = prim::Loop(%three, %yes, %x)
    block0(%i : int, %h : Tensor):
      %c : bool = aten::eq(%i, %three)
      %z : Tensor = prim::If(%c)
        block0():
          %s : Tensor = aten::sin(%h)
          -> (%s)
        block1():
          -> (%h)
      -> (%yes, %z)
  return (%y))IR");
    EXPECT_TRUE(follows_data(parsed.jit.ops.back().node)) << "what changes from round to round is not looked into";
}

/// Whether the last op of `code` may give other tensors; `%c` follows the data and `%yes` does not.
bool gives_others(const std::string& code) {
    const test::ParsedGraph parsed = test::parse_graph(R"IR(
graph(%x : Tensor):
  %none : NoneType = prim::Constant()
  %zero : int = prim::Constant[value=0]()
  %yes : bool = prim::Constant[value=1]()
  %t : Tensor = aten::sum(%x, %none)
  %c : bool = aten::Bool(%t)
  %u : Tensor = aten::sin(%x)
  %held : Tensor[] = prim::ListConstruct(%x, %u)
)IR" + code + R"IR(
  return (%y))IR");
    return may_give_others(parsed.jit.ops.back().node);
}

TEST(Branches, WhereATensorIsMadeChoosesNoElement) {
    EXPECT_FALSE(
        gives_others("  %numbers : int[] = prim::ListConstruct(%zero)\n"
                     "  %d : Device = prim::device(%x)\n"
                     "  %y : Tensor = aten::zeros(%numbers, %none, %none, %d, %none)"));
}

std::string changed_if(const std::string& condition) {
    return "  prim::If(" + condition + R"IR()
    block0():
      %set : Tensor[] = aten::_set_item(%held, %zero, %u)
      -> ()
    block1():
      -> ())IR";
}

TEST(Branches, AnElementOfAListThatABranchChangesMayBeAnother) {
    const std::string element = "\n  %y : Tensor = aten::__getitem__(%held, %zero)";
    EXPECT_FALSE(gives_others(element));
    EXPECT_TRUE(gives_others(changed_if("%c") + element));
    EXPECT_FALSE(gives_others(changed_if("%yes") + element));
    EXPECT_TRUE(gives_others(changed_if("%c") + "\n  %y : Tensor, %z : Tensor = prim::ListUnpack(%held)"));
    EXPECT_FALSE(gives_others(changed_if("%c") + "\n  %y : Tensor = aten::cat(%held, %zero)")) << "it makes a new one";
}

TEST(Branches, AnElementOfAListThatABranchGivesMayBeAnother) {
    const std::string given = R"IR(
  %new : Tensor[] = prim::If(%c)
    block0():
      %other : Tensor[] = prim::ListConstruct(%u, %x)
      -> (%other)
    block1():
      -> (%held)
  %all : Tensor[][] = prim::ListConstruct(%new)
  %first : Tensor[] = aten::__getitem__(%LIST, %zero)
  %y : Tensor = aten::__getitem__(%first, %zero))IR";
    const auto with = [&](const std::string& list) {
        std::string code = given;
        return code.replace(code.find("LIST"), 4, list);
    };
    EXPECT_TRUE(gives_others(with("all"))) << "a branch gave the list that is in it";
    std::string code = with("new");
    code.replace(code.find("%first : Tensor[]"), 17, "%y : Tensor");
    EXPECT_TRUE(gives_others(code.substr(0, code.rfind('\n'))));
}

TEST(Branches, AnElementThatTheDataChooseMayBeAnother) {
    const std::string place = "  %n : int = aten::Int(%t)\n";
    EXPECT_TRUE(gives_others(place + "  %y : Tensor = aten::__getitem__(%held, %n)"));
    EXPECT_TRUE(gives_others(place + "  %y : Tensor = aten::pop(%held, %n)"));
    EXPECT_FALSE(gives_others("  %n : int = aten::dim(%t)\n  %y : Tensor = aten::__getitem__(%held, %n)"));
    EXPECT_FALSE(gives_others(place + "  %y : Tensor = aten::select(%x, %zero, %n)")) << "one memory";
}

TEST(Branches, AnElementOfAPartThatTheDataChooseMayBeAnother) {
    const std::string place = "  %n : int = aten::Int(%t)\n";
    const std::string element = "\n  %y : Tensor = aten::__getitem__(%part, %zero)";
    EXPECT_TRUE(gives_others(place + "  %part : Tensor[] = aten::mul(%held, %n)" + element));
    EXPECT_FALSE(gives_others("  %part : Tensor[] = aten::mul(%held, %zero)" + element));
    EXPECT_TRUE(gives_others(place + "  %set : Tensor[] = aten::_set_item(%held, %n, %u)" +
                             "\n  %part : Tensor[] = aten::copy(%held)" + element));
    EXPECT_FALSE(gives_others(place + "  %sizes : int[] = prim::ListConstruct(%n, %n)" +
                              "\n  %part : Tensor[] = aten::split(%x, %sizes, %zero)" + element))
        << "sizes follow the data, not which tensors there are";
}

TEST(Branches, AListOfListsThatDoublesIsLookedThroughOnce) {
    std::string code = "  %h0 : Tensor[] = aten::add(%held, %held)\n";
    for (int i = 1; i < 100; ++i) {
        const std::string before = "%h" + std::to_string(i - 1);
        code += "  %h" + std::to_string(i) + " : Tensor[] = aten::add(" + before + ", " + before + ")\n";
    }
    EXPECT_FALSE(gives_others(code + "  %y : Tensor = aten::__getitem__(%h99, %zero)"));
}

TEST(Branches, AListThatABranchChangesFollowsTheData) {
    EXPECT_TRUE(follows(R"IR(  %l : int[] = prim::ListConstruct(%three)
  prim::If(%flag)
    block0():
      %m : int[] = aten::append(%l, %three)
      -> ()
    block1():
      -> ()
  %n : int = aten::len(%l)
  %c : bool = aten::eq(%n, %three))IR"));
}

}  // namespace
}  // namespace vpp
