#include "plan/document.hpp"

#include <gtest/gtest.h>

#include "unit/plan/plan_texts.hpp"

namespace vpp {
namespace {

using test::error_of;
using test::holds;

TEST(Document, KeepsValuesPlacesAndTheOrderOfTheText) {
    PlanSources sources;
    Node root = parse_document(sources, "p.toml", "[s]\nz = 1\na = [true, 2.5]\nt = \"x\"\nd = 2020-01-01\n");
    Node* section = root.find("s");
    ASSERT_NE(section, nullptr);
    ASSERT_EQ(section->children.size(), 4U);
    EXPECT_EQ(section->children[0].key, "z");
    EXPECT_EQ(section->children[0].integer, 1);
    EXPECT_EQ(section->children[0].key_place, (Place{0, 2, 1}));
    EXPECT_EQ(section->children[0].place, (Place{0, 2, 5}));
    const Node& list = section->children[1];
    ASSERT_EQ(list.kind, Node::Kind::Array);
    EXPECT_TRUE(list.children[0].boolean);
    EXPECT_EQ(list.children[1].number, 2.5);
    EXPECT_EQ(list.children[1].place.column, 12);
    EXPECT_EQ(section->children[2].text, "x");
    EXPECT_EQ(section->children[3].kind, Node::Kind::Date);
    EXPECT_EQ(root.find("t"), nullptr);
}

TEST(Document, SyntaxErrorsHaveTheirPlace) {
    PlanSources sources;
    const Error error = error_of([&] { parse_document(sources, "p.toml", "a = 1\nb = = 2\n"); });
    EXPECT_EQ(error.kind(), ErrorKind::Plan);
    ASSERT_EQ(error.problems().size(), 1U);
    EXPECT_EQ(error.problems()[0].position->line, 2);
    EXPECT_EQ(error.problems()[0].position->text, "b = = 2");
    EXPECT_TRUE(holds(error.what(), "p.toml:2:5: "));
}

// The library asserts where some of these begin; they must be errors all the same.
TEST(Document, BrokenHeadersAndKeysAreSyntaxErrors) {
    for (const char* text : {"[.a]",
                             "[=]",
                             "[#",
                             "[",
                             "[[",
                             "[[.a]]",
                             "[a.]",
                             ".a = 1",
                             "a. = 1",
                             "= 1",
                             "a",
                             "a =",
                             "{",
                             "a = {.b = 1}",
                             "a = {=}",
                             "a = [,]",
                             "a = \"",
                             "a = \"\\u12\"",
                             "a = 0x",
                             "a = 1e",
                             "a = 2020-13-01",
                             "a = 1.",
                             "a = +"}) {
        PlanSources sources;
        const Error error = error_of([&] { parse_document(sources, "p.toml", text); });
        EXPECT_TRUE(holds(error.what(), "this is not TOML")) << text;
    }
}

TEST(Document, TooManyValuesAreRefused) {
    std::string text = "a = [";
    for (size_t i = 0; i < kPlanLimitValues; ++i) text += "1,\n";
    PlanSources sources;
    EXPECT_EQ(error_of([&] { parse_document(sources, "p", text + "]"); }).problems()[0].message,
              "the plan holds too many values (at most " + std::to_string(kPlanLimitValues) + ")");
}

TEST(Document, LinesOfPositionsHaveNoLineEndAndAreShort) {
    PlanSources sources;
    sources.add("a", "one\r\ntwo\n" + std::string(5000, 'x') + "\nlast");
    EXPECT_EQ(sources.position({0, 1, 1}).text, "one");
    EXPECT_EQ(sources.position({0, 2, 1}).text, "two");
    EXPECT_EQ(sources.position({0, 3, 1}).text, "");
    EXPECT_EQ(sources.position({0, 4, 1}).text, "last");
    EXPECT_EQ(sources.position({0, 9, 1}).text, "");
    EXPECT_EQ(sources.position({0, 0, 0}).text, "");
}

TEST(Document, ValuesOfArgumentsPointIntoThem) {
    const auto value = parse_value("[1, 2]", {3, 1, 10});
    ASSERT_TRUE(value);
    EXPECT_EQ(value->place, (Place{3, 1, 10}));
    EXPECT_EQ(value->children[1].place, (Place{3, 1, 14}));
}

TEST(Document, WhatIsNoSingleValueIsNone) {
    for (const char* text : {"1F1B", "1\ny = 2", "", "a = 1", "[1", "1 ]"}) {
        EXPECT_FALSE(parse_value(text, {0, 1, 1})) << text;
    }
}

}  // namespace
}  // namespace vpp
