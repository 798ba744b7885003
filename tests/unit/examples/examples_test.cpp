#include "examples/examples.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "unit/examples/made.hpp"

namespace vpp {
namespace {

using test::error_of;
using test::make;
using ::testing::HasSubstr;

std::vector<std::string> names_that_make_all() {
    std::vector<std::string> names;
    for (const Example& example : all_examples()) {
        if (!example.reads_model) names.push_back(example.name);
    }
    return names;
}

/// Parts of a plan between blank lines that say nothing in a comment.
std::vector<std::string> silent_parts(const std::string& plan) {
    std::vector<std::string> silent;
    std::istringstream lines(plan + "\n");
    std::string part;
    for (std::string line; std::getline(lines, line);) {
        if (!line.empty()) {
            part += line + "\n";
        } else {
            if (!part.empty() && part.find('#') == std::string::npos) silent.push_back(part);
            part.clear();
        }
    }
    return silent;
}

TEST(Examples, AreFoundByName) {
    EXPECT_EQ(example_of("two-towers").name, "two-towers");
    EXPECT_HAS(error_of(ErrorKind::CommandLine, [] { example_of("gpt-tyni"); }), "did you mean 'gpt-tiny'?");
    EXPECT_HAS(error_of(ErrorKind::CommandLine, [] { example_of("nonsense"); }),
               "there are: gpt-tiny, digits-cnn, two-towers, manual, own-model");
}

TEST(Examples, TheSameRequestGivesTheSameBytes) {
    for (const std::string& name : names_that_make_all()) {
        const MadeExample one = make(name), two = make(name);
        ASSERT_EQ(one.files.size(), two.files.size());
        for (size_t i = 0; i < one.files.size(); ++i) {
            EXPECT_EQ(one.files[i].name, two.files[i].name);
            EXPECT_TRUE(one.files[i].contents == two.files[i].contents) << name << ": " << one.files[i].name;
        }
    }
}

TEST(Examples, EveryPlanSaysWhatItsPartsMean) {
    for (const std::string& name : names_that_make_all()) {
        const std::string plan = test::contents_of(make(name), "plan.toml");
        EXPECT_THAT(silent_parts(plan), ::testing::IsEmpty()) << name;
        EXPECT_THAT(plan, HasSubstr("vpp explain")) << name;
        EXPECT_THAT(plan, HasSubstr("# In the folder of this file:\n#   vpp inspect plan.toml\n")) << name;
        EXPECT_THAT(plan, ::testing::Not(HasSubstr("{{"))) << name;
    }
    EXPECT_EQ(silent_parts("# a\n[a]\n\n[b]\nc = 1\n\n[d] # e\n").size(), 1U) << "the measure itself";
}

TEST(Examples, TheFolderNamesTheRun) {
    const MadeExample made = example_of("manual").make({"mine"});
    EXPECT_THAT(test::contents_of(made, "plan.toml"), HasSubstr("dir = \"runs/mine\""));
    EXPECT_THAT(test::contents_of(made, "plan.toml"), HasSubstr("#   vpp run plan.toml\n")) << "wherever it lies";
}

}  // namespace
}  // namespace vpp
