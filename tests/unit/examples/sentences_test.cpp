#include "examples/sentences.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

namespace vpp {
namespace {

TEST(Sentences, AreOfTheGrammarAndOfTheLengthAskedFor) {
    const std::string text = make_sentences(5000, 1);
    EXPECT_EQ(text.size(), 5000U);
    std::smatch line;
    EXPECT_TRUE(std::regex_search(text, line, std::regex("^the( [a-z]+){9}\\.\n"))) << text.substr(0, 200);
    EXPECT_GT(std::count(text.begin(), text.end(), '\n'), 50);
}

TEST(Sentences, APureFunctionOfTheSeed) {
    EXPECT_EQ(make_sentences(500, 1), make_sentences(500, 1));
    EXPECT_EQ(make_sentences(300, 1), make_sentences(500, 1).substr(0, 300));
    EXPECT_NE(make_sentences(500, 1), make_sentences(500, 2));
}

}  // namespace
}  // namespace vpp
