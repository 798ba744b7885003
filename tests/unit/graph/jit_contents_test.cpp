// What changes make of a list or dict whose elements are known: the same as LibTorch, place by place.
#include "graph/jit_contents.hpp"

#include <gtest/gtest.h>

#include <string>

#include "unit/graph/ir_text.hpp"

namespace vpp {
namespace {

using torch::jit::Node;
using torch::jit::Value;

constexpr const char* kListOfThree = R"IR(
graph(%a : Tensor, %b : Tensor, %c : Tensor, %d : Tensor, %n : int):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %three : int = prim::Constant[value=3]()
  %far : int = prim::Constant[value=9]()
  %last : int = prim::Constant[value=-1]()
  %front : int = prim::Constant[value=-9]()
  %container : Tensor[] = prim::ListConstruct(%a, %b, %c)
)IR";

constexpr const char* kDictOfTwo = R"IR(
graph(%a : Tensor, %b : Tensor, %d : Tensor, %word : str):
  %x : str = prim::Constant[value="x"]()
  %y : str = prim::Constant[value="y"]()
  %z : str = prim::Constant[value="z"]()
  %container : Dict(str, Tensor) = prim::DictConstruct(%x, %a, %y, %b)
)IR";

/// The op that changes the container, the last one of the graph.
Node* change_in(const test::ParsedGraph& parsed) {
    return *parsed.jit.graph->nodes().rbegin();
}

std::string name_of(const test::ParsedGraph& parsed, const Value* value) {
    for (const auto& [name, one] : parsed.values) {
        if (one == value) return name;
    }
    return "?";
}

/// What is in the container behind the op: "ba", or "xa yb" of a dict; why not, where that is not known.
std::string behind(const char* graph, const std::string& change, bool others_change = false) {
    const test::ParsedGraph parsed = test::parse_graph(graph + ("  " + change) + "\n  return (%a)");
    ContainerContents contents(parsed.values.at("container")->node(), others_change);
    if (!contents.understands(change_in(parsed))) return "not understood";
    if (!contents.follow(change_in(parsed))) return "no such place";
    std::string text;
    for (size_t i = 0; i < contents.values().size(); ++i) {
        if (!contents.keys().empty()) text += (i > 0 ? " " : "") + name_of(parsed, contents.keys()[i]);
        text += name_of(parsed, contents.values()[i]);
    }
    return text;
}

/// What a pop gives.
std::string taken_by(const char* graph, const std::string& change) {
    const test::ParsedGraph parsed = test::parse_graph(graph + ("  " + change) + "\n  return (%a)");
    const ContainerContents contents(parsed.values.at("container")->node(), false);
    EXPECT_TRUE(is_pop(change_in(parsed))) << change;
    return name_of(parsed, contents.taken_by(change_in(parsed)));
}

TEST(ContainerContents, ElementsAreAddedAndSet) {
    EXPECT_EQ(behind(kListOfThree, "%r : Tensor[] = aten::append(%container, %d)"), "abcd");
    EXPECT_EQ(behind(kListOfThree, "%r : Tensor[] = aten::_set_item(%container, %last, %d)"), "abd");
    EXPECT_EQ(behind(kListOfThree, "%r : Tensor[] = aten::_set_item(%container, %three, %d)"), "no such place");
    EXPECT_EQ(behind(kListOfThree, "%r : Tensor[] = aten::_set_item(%container, %n, %d)"), "not understood");
    EXPECT_EQ(behind(kDictOfTwo, "aten::_set_item(%container, %x, %d)"), "xd yb");
    EXPECT_EQ(behind(kDictOfTwo, "aten::_set_item(%container, %z, %d)"), "xa yb zd");
    EXPECT_EQ(behind(kDictOfTwo, "aten::_set_item(%container, %word, %d)"), "not understood");
}

TEST(ContainerContents, ListsAreJoinedUnlessAnotherNameMayChangeThem) {
    const std::string more = "%more : Tensor[] = prim::ListConstruct(%d, %a)\n  ";
    const std::string extend = more + "aten::extend(%container, %more)";
    EXPECT_EQ(behind(kListOfThree, extend), "abcda");
    EXPECT_EQ(behind(kListOfThree, more + "%r : Tensor[] = aten::add_(%container, %more)"), "abcda");
    EXPECT_EQ(behind(kListOfThree, extend, /*others_change=*/true), "not understood");
    std::string many = "%more : Tensor[] = prim::ListConstruct(%d";
    for (int i = 0; i < 253; ++i) many += ", %d";
    EXPECT_EQ(behind(kListOfThree, many + ")\n  aten::extend(%container, %more)"), "no such place");
}

TEST(ContainerContents, AListIsTurnedRound) {
    EXPECT_EQ(behind(kListOfThree, "aten::reverse(%container)"), "cba");
}

TEST(ContainerContents, ElementsArePutInAtPlacesInsideOrAtTheEnds) {
    const auto put = [](const std::string& place) {
        return behind(kListOfThree, "aten::insert(%container, %" + place + ", %d)");
    };
    EXPECT_EQ(put("zero"), "dabc");
    EXPECT_EQ(put("two"), "abdc");
    EXPECT_EQ(put("last"), "abdc");
    EXPECT_EQ(put("three"), "abcd");
    EXPECT_EQ(put("far"), "abcd");
    EXPECT_EQ(put("front"), "dabc");
    EXPECT_EQ(put("n"), "not understood");
}

TEST(ContainerContents, ElementsAreTakenOut) {
    EXPECT_EQ(behind(kListOfThree, "%r : Tensor = aten::pop(%container, %last)"), "ab");
    EXPECT_EQ(taken_by(kListOfThree, "%r : Tensor = aten::pop(%container, %last)"), "c");
    EXPECT_EQ(behind(kListOfThree, "%r : Tensor = aten::pop(%container, %zero)"), "bc");
    EXPECT_EQ(taken_by(kListOfThree, "%r : Tensor = aten::pop(%container, %zero)"), "a");
    EXPECT_EQ(behind(kListOfThree, "aten::Delete(%container, %one)"), "ac");
    for (const char* missing : {"three", "front"}) {
        const std::string change = std::string("%r : Tensor = aten::pop(%container, %") + missing + ")";
        EXPECT_EQ(behind(kListOfThree, change), "no such place");
    }
    EXPECT_EQ(behind(kListOfThree, "%r : Tensor = aten::pop(%container, %n)"), "not understood");
}

TEST(ContainerContents, KeysAreTakenOut) {
    EXPECT_EQ(behind(kDictOfTwo, "%r : Tensor = aten::pop(%container, %x)"), "yb");
    EXPECT_EQ(taken_by(kDictOfTwo, "%r : Tensor = aten::pop(%container, %y)"), "b");
    EXPECT_EQ(behind(kDictOfTwo, "%r : Tensor = aten::pop(%container, %z)"), "no such place");
    EXPECT_EQ(behind(kDictOfTwo, "%r : Tensor = aten::pop(%container, %word)"), "not understood");
    EXPECT_EQ(behind(kDictOfTwo, "%r : Tensor = aten::pop(%container, %z, %d)"), "xa yb");
    EXPECT_EQ(taken_by(kDictOfTwo, "%r : Tensor = aten::pop(%container, %z, %d)"), "d");
    EXPECT_EQ(taken_by(kDictOfTwo, "%r : Tensor = aten::pop(%container, %x, %d)"), "a");
    EXPECT_EQ(behind(kDictOfTwo, "aten::Delete(%container, %y)"), "xa");
}

TEST(ContainerContents, OtherChangesAreNotUnderstood) {
    EXPECT_EQ(behind(kListOfThree, "aten::clear(%container)"), "not understood");
    EXPECT_EQ(behind(kListOfThree, "aten::remove(%container, %d)"), "not understood");
    EXPECT_EQ(behind(kDictOfTwo, "%r : Tensor = aten::setdefault(%container, %z, %d)"), "not understood");
}

TEST(ContainerContents, KeysThatAreUnknownOrThereTwiceAreSaid) {
    const auto unknown = [](const std::string& items) {
        const std::string made = "  %made : Dict(str, Tensor) = prim::DictConstruct(" + items + ")";
        const test::ParsedGraph parsed = test::parse_graph(kDictOfTwo + made + "\n  return (%a)");
        return ContainerContents(parsed.values.at("made")->node(), false).has_unknown_keys();
    };
    EXPECT_FALSE(unknown("%x, %a, %z, %a"));
    EXPECT_TRUE(unknown("%x, %a, %word, %b"));
    EXPECT_TRUE(unknown("%x, %a, %x, %b"));
}

}  // namespace
}  // namespace vpp
