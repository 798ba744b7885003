#include "base/suggest.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace vpp {
namespace {

const std::vector<std::string> kWords{"num_stages", "num_microbatches", "schedule_type", "lr", "pp"};

TEST(EditDistance, CountsEdits) {
    EXPECT_EQ(edit_distance("", ""), 0);
    EXPECT_EQ(edit_distance("abc", "abc"), 0);
    EXPECT_EQ(edit_distance("abc", "abd"), 1);
    EXPECT_EQ(edit_distance("abc", "ab"), 1);
    EXPECT_EQ(edit_distance("", "abc"), 3);
    EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
}

TEST(EditDistance, ASwapIsOneEdit) {
    EXPECT_EQ(edit_distance("1FB1", "1F1B"), 1);
    EXPECT_EQ(edit_distance("ca", "abc"), 3);  // optimal string alignment: no edit inside a swap
}

TEST(EditDistance, CaseIsIgnoredAndItIsSymmetric) {
    EXPECT_EQ(edit_distance("GPipe", "GPIPE"), 0);
    EXPECT_EQ(edit_distance("ABdc", "abCD"), 1);
    for (const std::string& a : kWords) {
        for (const std::string& b : kWords) EXPECT_EQ(edit_distance(a, b), edit_distance(b, a));
    }
}

TEST(NearestWord, MistypedWordsAreFound) {
    EXPECT_EQ(nearest_word("num_stage", kWords), "num_stages");
    EXPECT_EQ(nearest_word("nmu_microbatchs", kWords), "num_microbatches");
    EXPECT_EQ(nearest_word("SCHEDULE_TYPE", kWords), "schedule_type");
    EXPECT_EQ(nearest_word("ppp", kWords), "pp");
}

TEST(NearestWord, FarWordsAreNot) {
    EXPECT_EQ(nearest_word("checkpoint", kWords), "");
    EXPECT_EQ(nearest_word("num_stages", {}), "");
    EXPECT_EQ(nearest_word(std::string(100000, 'a'), kWords), "");
}

TEST(NearestWord, AWordWithoutACommonLetterIsNotNear) {
    EXPECT_EQ(nearest_word("xy", kWords), "");
    EXPECT_EQ(nearest_word("foo", std::vector<std::string>{"low", "file"}), "") << "one letter of three is no likeness";
    EXPECT_EQ(nearest_word("lwo", std::vector<std::string>{"low", "file"}), "low");
    EXPECT_EQ(nearest_word("", kWords), "");
}

TEST(DidYouMean, ASentenceOrNothing) {
    EXPECT_EQ(did_you_mean("num_stags", kWords), "; did you mean 'num_stages'?");
    EXPECT_EQ(did_you_mean("something else", kWords), "");
}

TEST(DidYouMean, ANameOfAForeignFileCannotSteerATerminal) {
    const std::vector<std::string> names{"weight\x1b[2J"};
    EXPECT_EQ(did_you_mean("weight[2J", names), "; did you mean 'weight?[2J'?");
}

}  // namespace
}  // namespace vpp
