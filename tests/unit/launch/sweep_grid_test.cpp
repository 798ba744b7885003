#include "launch/sweep_grid.hpp"

#include <gtest/gtest.h>

#include <set>

#include "base/file.hpp"
#include "base/shell.hpp"

namespace vpp {
namespace {

using Texts = std::vector<std::string>;

Texts values_of(const std::string& argument) {
    Texts texts;
    const GridAxis axis = parse_grid({argument}).at(0);
    for (const GridValue& value : axis.values) texts.push_back(value.text);
    return texts;
}

Texts names_of(const Texts& arguments) {
    Texts names;
    for (const Combination& one : combinations_of(parse_grid(arguments))) names.push_back(one.name);
    return names;
}

/// All problems, as they are shown.
std::string refusal_of(const Texts& arguments) {
    try {
        parse_grid(arguments);
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::Plan);
        return error.what();
    }
    return "none";
}

TEST(SweepGrid, EveryCombinationAndTheLastAxisFirst) {
    const auto all = combinations_of(parse_grid({"a.b=1,2", "c.d=x,y"}));
    ASSERT_EQ(all.size(), 4u);
    EXPECT_EQ(all[0].settings, (Texts{"a.b=1", "c.d=x"}));
    EXPECT_EQ(all[1].settings, (Texts{"a.b=1", "c.d=y"}));
    EXPECT_EQ(all[3].settings, (Texts{"a.b=2", "c.d=y"}));
    EXPECT_EQ(all[2].name, "a.b=2,c.d=x");
}

TEST(SweepGrid, WithoutAnAxisThereIsOne) {
    const auto all = combinations_of({});
    ASSERT_EQ(all.size(), 1u);
    EXPECT_TRUE(all[0].settings.empty());
}

TEST(SweepGrid, CommasInsideOfBracketsAndQuotesSeparateNothing) {
    EXPECT_EQ(values_of("o.betas=[0.9, 0.95],[0.9,0.99]"), (Texts{"[0.9, 0.95]", "[0.9,0.99]"}));
    EXPECT_EQ(values_of("a.b=\"x,y\",'z,[',plain"), (Texts{"\"x,y\"", "'z,['", "plain"}));
    EXPECT_EQ(values_of("a.b=\"x\\\",y\",z"), (Texts{"\"x\\\",y\"", "z"}));
    EXPECT_EQ(values_of("a.b=[[1,2],[3]],{k = \"],\"}"), (Texts{"[[1,2],[3]]", "{k = \"],\"}"}));
    EXPECT_EQ(values_of("a.b=it's,that's"), (Texts{"it's", "that's"}));
    EXPECT_EQ(values_of("a.b= 1 , 2 "), (Texts{"1", "2"}));
    EXPECT_EQ(values_of("a.b=x=1,x=2"), (Texts{"x=1", "x=2"}));
    EXPECT_EQ(values_of("a.b=\"\",x]"), (Texts{"\"\"", "x]"}));
}

TEST(SweepGrid, NamesSayTheSettingsInPlainCharacters) {
    EXPECT_EQ(names_of({"optimizer.lr=1e-3,0.01", "optimizer.betas=[0.9, 0.95]"}),
              (Texts{"optimizer.lr=1e-3,optimizer.betas=0.9+0.95", "optimizer.lr=0.01,optimizer.betas=0.9+0.95"}));
    EXPECT_EQ(names_of({"optimizer.group[0].lr=1"}), Texts{"optimizer.group0.lr=1"});
    EXPECT_EQ(names_of({"a.b=\"x\""}), Texts{"a.b=x"});
}

TEST(SweepGrid, HostileValuesGiveTameNames) {
    const Texts hostile{
        "a.b=../../x,/etc/passwd,..,.,-rf,~,$(reboot),`x`,a b,a_b,a;b,a&b,*,?,!x,\\,#,<>,|,%s,a/b,a:b",
        "c.d=\xc3\xa4,\xc3\xb6,'[,]',\"\"," + std::string(3000, 'x') + "," + std::string(3000, 'x') + "y"};
    const Texts names = names_of(hostile);
    EXPECT_EQ(names.size(), 22u * 6u);
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
    for (const std::string& name : names) {
        EXPECT_TRUE(is_plain_name(name)) << name;
        EXPECT_EQ(shell_quoted(name), name);
        EXPECT_LE(name.size(), 180u);
        EXPECT_NE(name.front(), '-');
        EXPECT_NE(name.front(), '.');
    }
}

TEST(SweepGrid, ManyAxesHaveAShortName) {
    Texts arguments;
    for (int i = 0; i < 30; ++i) arguments.push_back("section.a_long_key" + std::to_string(i) + "=1");
    arguments.emplace_back("z.z=1,2");
    const Texts names = names_of(arguments);
    EXPECT_LE(names[0].size(), 180u);
    EXPECT_NE(names[0], names[1]);
}

TEST(SweepGrid, MistakesAreShownAllAtOnceWithTheirPlaces) {
    EXPECT_EQ(refusal_of({"lr", "=1", "a.b=1,,2", "c.d=[1,2", "e.f=1,\"x", "run.dir=../../x", "g.h=1,1"}),
              "--grid:1:1: this names no key with values (expected --grid section.key=value,value); try --grid "
              "optimizer.lr=1e-3,3e-3\n    lr\n    ^\n"
              "--grid:1:1: this names no key with values (expected --grid section.key=value,value); try --grid "
              "optimizer.lr=1e-3,3e-3\n    =1\n    ^\n"
              "--grid:1:7: a value is missing here; an empty text is \"\"\n    a.b=1,,2\n          ^\n"
              "--grid:1:5: this [ is not closed; a text that holds one stands in quotes\n    c.d=[1,2\n        ^\n"
              "--grid:1:7: this \" is not closed; a text that holds one stands in quotes\n    e.f=1,\"x\n          ^\n"
              "--grid:1:1: every run gets a folder of its own here; choose where these lie by --folder\n"
              "    run.dir=../../x\n    ^\n"
              "--grid:1:7: this value stands here twice, or in other brackets or quotes; leave one out\n"
              "    g.h=1,1\n          ^");
}

TEST(SweepGrid, AKeyInTwoArgumentsIsRefused) {
    EXPECT_EQ(refusal_of({"a.b=1", "a.b=2"}),
              "--grid:1:1: a.b is in the grid twice; give all its values to one --grid\n    a.b=2\n    ^");
}

TEST(SweepGrid, ControlCharactersAreRefused) {
    for (const std::string& text : {std::string("a.b=1\n2"), std::string("a.b=\x1b[2J"), std::string("a\0b=1", 5)}) {
        EXPECT_NE(refusal_of({text}).find("there is a control character; leave it out"), std::string::npos);
        EXPECT_EQ(refusal_of({text}).find('\x1b'), std::string::npos);
    }
}

TEST(SweepGrid, TooManyCombinationsAreRefused) {
    std::string values;
    for (int i = 0; i < 65; ++i) values += (i > 0 ? "," : "") + std::to_string(i);
    EXPECT_EQ(refusal_of({"a.b=" + values, "c.d=" + values}),
              "the grid has too many combinations (got 65 x 65, expected at most 4096); leave values out");
    EXPECT_EQ(refusal_of({"a.b=" + values}), "none");
}

TEST(SweepGrid, ProblemsOfSettingsPointIntoTheGrid) {
    const auto axes = parse_grid({"a.b=1, \xc3\xa4,wrong"});
    const Problem value = in_grid({"bad", SourcePosition{"--set", 1, 5, "a.b=wrong"}}, axes);
    EXPECT_EQ(to_text(value), "--grid:1:10: bad\n    a.b=1, \xc3\xa4,wrong\n             ^");
    EXPECT_EQ(in_grid({"bad", SourcePosition{"--set", 1, 3, "a.b=wrong"}}, axes).position->column, 3);
    EXPECT_EQ(in_grid({"bad", SourcePosition{"--set", 1, 5, "a.b=other"}}, axes).position->source, "--set");
    EXPECT_EQ(in_grid({"bad", SourcePosition{"plan.toml", 1, 5, "a.b=wrong"}}, axes).position->source, "plan.toml");
    EXPECT_EQ(in_grid({"bad", std::nullopt}, axes).position, std::nullopt);
}

}  // namespace
}  // namespace vpp
