#include "examples/size_hints.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vpp {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

const std::string kSizes = " must match the size of tensor b (12) at non-singleton dimension 2";

Field sample(std::vector<int64_t> shape) {
    return {"x", DType::F32, std::move(shape)};
}

TEST(SizeHints, ASizeThatIsWantedIsALength) {
    SizeHints hints;
    EXPECT_TRUE(hints.empty());
    for (const int64_t length : {16, 8, 32}) {
        const std::string given = std::to_string(length);
        hints.learn("the op aten::add fails: The size of tensor a (" + given + ")" + kSizes, {sample({length})});
    }
    EXPECT_FALSE(hints.empty());
    EXPECT_THAT(hints.sizes().lengths, ElementsAre(12)) << "not those that were tried";
    EXPECT_EQ(hints.sizes().sides, LikelySizes().sides);
}

TEST(SizeHints, WhatIsNamedMostComesFirst) {
    SizeHints hints;
    hints.learn("the expanded size of the tensor (5) must match the existing size (7) at dimension 0", {sample({3})});
    hints.learn("the expanded size of the tensor (9) must match the existing size (7) at dimension 0", {sample({3})});
    EXPECT_THAT(hints.sizes().lengths, ElementsAre(7, 5, 9));
}

TEST(SizeHints, TheSideOfAnImageFollowsFromTwo) {
    SizeHints hints;
    const auto refuse = [&](int64_t side) {
        const int64_t given = 4 * (side / 4) * (side / 4);
        hints.learn("mat1 and mat2 shapes cannot be multiplied (2x" + std::to_string(given) + " and 576x10)",
                    {sample({3, side, side})});
    };
    refuse(32);
    EXPECT_EQ(hints.sizes().sides, LikelySizes().sides) << "one says nothing";
    refuse(28);
    refuse(64);
    EXPECT_EQ(hints.sizes().sides.front(), 48);
    EXPECT_THAT(hints.sizes().sides, Contains(45));
    EXPECT_EQ(hints.sizes().lengths, LikelySizes().lengths);
}

TEST(SizeHints, OtherErrorsSayNothing) {
    SizeHints hints;
    hints.learn("the op aten::embedding fails: index out of range in self", {sample({16})});
    hints.learn("mat1 and mat2 shapes cannot be multiplied (2x8 and 12x3)", {sample({8})});
    EXPECT_TRUE(hints.empty());
}

}  // namespace
}  // namespace vpp
