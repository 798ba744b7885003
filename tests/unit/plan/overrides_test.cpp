#include "plan/overrides.hpp"

#include <gtest/gtest.h>

#include "unit/plan/plan_texts.hpp"

namespace vpp {
namespace {

using test::error_of;
using test::holds;

class OverridesTest : public testing::Test {
  protected:
    void set(const std::string& argument) { apply_override(root_, argument, sources_, problems_); }
    std::string problem() {
        return error_of([&] { problems_.raise(sources_); }).what();
    }
    PlanSources sources_;
    Problems problems_;
    Node root_ = parse_document(sources_, "p.toml", "[a]\nb = 1\nlist = [1, 2]\n[[g]]\nx = 1\n[[g]]\nx = 2\n");
};

TEST_F(OverridesTest, ReplacesAndMakesKeys) {
    set("a.b=7");
    set("new.deep.key=true");
    set("a.text=1F1B");
    EXPECT_EQ(root_.find("a")->find("b")->integer, 7);
    EXPECT_TRUE(root_.find("new")->find("deep")->find("key")->boolean);
    EXPECT_EQ(root_.find("a")->find("text")->text, "1F1B");
    EXPECT_TRUE(problems_.empty());
}

TEST_F(OverridesTest, ReachesIntoLists) {
    set("a.list[1]=5");
    set("g[1].x=9");
    EXPECT_EQ(root_.find("a")->find("list")->children[0].integer, 1);
    EXPECT_EQ(root_.find("a")->find("list")->children[1].integer, 5);
    EXPECT_EQ(root_.find("g")->children[0].children[0].integer, 1);
    EXPECT_EQ(root_.find("g")->children[1].children[0].integer, 9);
}

TEST_F(OverridesTest, TheLastOneWins) {
    set("a.b=2");
    set("a.b=3");
    EXPECT_EQ(root_.find("a")->find("b")->integer, 3);
    EXPECT_EQ(root_.find("a")->find("b")->place, (Place{2, 1, 5}));
}

TEST_F(OverridesTest, AnEmptyValueIsAnEmptyText) {
    set("a.b=");
    EXPECT_EQ(root_.find("a")->find("b")->kind, Node::Kind::Text);
}

TEST_F(OverridesTest, PlainTextsHoldAnyCharacter) {
    set("a.b=runs/gr\xc3\xbc\xc3\x9f");
    EXPECT_EQ(root_.find("a")->find("b")->text, "runs/gr\xc3\xbc\xc3\x9f");
    set("a.b=it's \xc3\xbc");
    EXPECT_EQ(root_.find("a")->find("b")->text, "it's \xc3\xbc");
    set("a.list=['\xc3\xbc']");
    EXPECT_EQ(root_.find("a")->find("list")->children[0].text, "\xc3\xbc");
    EXPECT_TRUE(problems_.empty());
    set("a.b=\xc3\xbc\xff");
    EXPECT_TRUE(holds(problem(), "--set:1:6: this byte is not UTF-8"));
    set("a.b=\xc3\xbc\x1b");
    EXPECT_TRUE(holds(problem(), "--set:1:6: control characters"));
    set("\xc3\xbc.x=1");
    EXPECT_TRUE(holds(problem(), "this does not set a key"));
}

TEST_F(OverridesTest, MissingEntriesAreNamed) {
    set("g[2].x=1");
    EXPECT_TRUE(holds(problem(), "--set:1:2: g has no entry 2 (got 2 entries, counted from 0)"));
}

TEST_F(OverridesTest, ListsAndValuesAreNoSections) {
    set("a.b.c=1");
    set("a.list.c=1");
    set("a[0]=1");
    EXPECT_TRUE(holds(problem(), "a.b is a value, not a section"));
    EXPECT_TRUE(holds(problem(), "a.list is a list; name the entry, as in [0]"));
    EXPECT_TRUE(holds(problem(), "--set:1:2: a is not a list, so it has no entry 0; set the whole key instead"));
}

TEST_F(OverridesTest, OtherFormsAreRefused) {
    const std::vector<std::string> bad = {"",
                                          "x",
                                          "=1",
                                          "a..b=1",
                                          ".a=1",
                                          "a.=1",
                                          "a b=1",
                                          "a[=1",
                                          "a[x]=1",
                                          "a[0=1",
                                          "[0]=1",
                                          "a[0]b=1",
                                          "a.[0]=1",
                                          "a[-1]=1",
                                          "a[99999999999999999999]=1",
                                          "a.b.c.d.e.f.g.h.i=1"};
    for (const std::string& argument : bad) {
        Problems problems;
        apply_override(root_, argument, sources_, problems);
        EXPECT_EQ(error_of([&] { problems.raise(sources_); }).problems()[0].message,
                  "this does not set a key (expected section.key=value); try --set train.steps=100")
            << argument;
    }
}

TEST_F(OverridesTest, HostileArgumentsAreBounded) {
    std::string dots;
    for (int i = 0; i < 100'000; ++i) dots += "a.";
    set(dots + "b=1");
    set("a.b=" + std::string(10'000, '['));
    set(std::string("a.b=\x1b", 5));
    EXPECT_TRUE(holds(problem(), "--set: the argument is too long (at most 65536 bytes); write it into the plan"));
    EXPECT_TRUE(holds(problem(), "nested too deeply"));
    EXPECT_TRUE(holds(problem(), "control characters"));
}

}  // namespace
}  // namespace vpp
