#include "device/cards.hpp"

#include <gtest/gtest.h>

namespace vpp {
namespace {

TEST(Cards, AreThereOnlyWithTheirParts) {
    if (!has_cuda_parts()) {
        EXPECT_TRUE(cuda_cards().empty());
        EXPECT_EQ(cuda_version(), "");
        return;
    }
    EXPECT_EQ(cuda_version().substr(0, 7), "CUDA 13") << "the one of the wheel";
    for (const Card& card : cuda_cards()) {
        EXPECT_FALSE(card.name.empty());
        EXPECT_GT(card.major, 0);
        EXPECT_GT(card.memory_bytes, 0);
        EXPECT_EQ(card.id.size(), 40U) << card.id;
        EXPECT_GE(card.slot.size(), 10U) << card.slot;
    }
}

}  // namespace
}  // namespace vpp
