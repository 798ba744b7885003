#include "schedule/expression.hpp"

#include <gtest/gtest.h>

#include <set>

namespace vpp {
namespace {

Tree weight(TreePool& pool, int parameter) {
    return pool.make({TreeKind::Weight, parameter, 0, 0, 0});
}
Tree seed(TreePool& pool, int microbatch) {
    return pool.make({TreeKind::Seed, microbatch, 0, 0, 0});
}

TEST(TreePool, EqualTreesAreOneAndOthersDiffer) {
    TreePool pool;
    EXPECT_EQ(weight(pool, 3), weight(pool, 3));
    std::set<Tree> trees{kUndefined, kMissing};
    for (int label = 0; label < 3000; ++label) {  // the table grows meanwhile
        trees.insert(weight(pool, label));
        trees.insert(seed(pool, label));
        trees.insert(pool.make({TreeKind::WeightGradient, label, 0, seed(pool, label), kUndefined}));
    }
    EXPECT_EQ(trees.size(), 2U + 3 * 3000);
    EXPECT_EQ(pool.size(), trees.size());
    for (int label = 0; label < 3000; ++label) EXPECT_TRUE(trees.count(seed(pool, label)));
    EXPECT_EQ(pool.size(), trees.size());
}

TEST(TreePool, SumsKeepBracketsAndOrder) {
    TreePool pool;
    const Tree a = seed(pool, 0), b = seed(pool, 1), c = seed(pool, 2);
    EXPECT_NE(pool.sum(pool.sum(a, b), c), pool.sum(a, pool.sum(b, c)));
    EXPECT_NE(pool.sum(a, b), pool.sum(b, a));
    EXPECT_EQ(pool.text(pool.sum(pool.sum(a, b), c), 3), "((loss[0] + loss[1]) + loss[2])");
}

TEST(TreePool, UndefinedIsNeutralButMissingShows) {
    TreePool pool;
    const Tree a = seed(pool, 0);
    EXPECT_EQ(pool.sum(kUndefined, a), a);
    EXPECT_EQ(pool.sum(a, kUndefined), a);
    EXPECT_EQ(pool.sum(kUndefined, kUndefined), kUndefined);
    EXPECT_EQ(pool.text(pool.sum(kMissing, a), 3), "(missing + loss[0])");
}

TEST(TreePool, TextsNameTheMicrobatchesAndStopAtTheDepth) {
    TreePool pool;
    const auto gradient = [&](int i) {
        return pool.make({TreeKind::WeightGradient, 7, 0, seed(pool, i), weight(pool, 1)});
    };
    EXPECT_EQ(pool.text(gradient(4), 0), "dw7[4]");
    EXPECT_EQ(pool.text(gradient(4), 1), "dw7[4](loss[4], w1)");
    Tree sum = gradient(0);
    for (int i = 1; i < 6; ++i) sum = pool.sum(sum, gradient(i));
    EXPECT_EQ(pool.text(sum, 1), "((((.. + dw7[2]) + dw7[3]) + dw7[4]) + dw7[5])");
    EXPECT_EQ(pool.text(sum, 0), "(..)");
    EXPECT_EQ(pool.text(pool.make({TreeKind::InputGradient, 2, 1, sum, kUndefined}), 0), "dv2[0..5]");
}

TEST(TreePool, DifferencesAreShownWhereTheyAre) {
    TreePool pool;
    const auto sum_of = [&](const std::vector<int>& order) {
        Tree sum = kUndefined;
        for (int i : order) sum = pool.sum(sum, seed(pool, i));
        return sum;
    };
    EXPECT_EQ(pool.difference_text(sum_of({0, 1, 3, 2}), sum_of({0, 1, 2, 3})),
              "(((loss[0] + loss[1]) + loss[3]) + loss[2]) instead of (((loss[0] + loss[1]) + loss[2]) + loss[3])");
    // In front of an equal tail: the difference is the third term.
    EXPECT_EQ(pool.difference_text(sum_of({0, 1, 9, 3, 4, 5}), sum_of({0, 1, 2, 3, 4, 5})),
              "((loss[0] + loss[1]) + loss[9]) instead of ((loss[0] + loss[1]) + loss[2])");
    const Tree inside = pool.make({TreeKind::WeightGradient, 2, 0, kMissing, weight(pool, 0)});
    const Tree right = pool.make({TreeKind::WeightGradient, 2, 0, seed(pool, 0), weight(pool, 0)});
    EXPECT_EQ(pool.difference_text(inside, right), "missing instead of loss[0]");
    EXPECT_EQ(pool.difference_text(kUndefined, right), "undefined instead of dw2[0](loss[0], w0)");
}

}  // namespace
}  // namespace vpp
