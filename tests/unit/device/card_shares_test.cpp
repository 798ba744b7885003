#include "device/card_shares.hpp"

#include <gtest/gtest.h>

namespace vpp {
namespace {

std::vector<Card> cards_of(std::initializer_list<int64_t> memory_bytes) {
    std::vector<Card> cards;
    for (int64_t bytes : memory_bytes) cards.push_back({"card of " + std::to_string(bytes), 9, 0, bytes});
    return cards;
}

TEST(CardShares, RanksTakeTheCardsInTurn) {
    const std::vector<CardShare> shares = card_shares({1, 10, 100, 1000, 10000}, cards_of({20000, 2000}));
    ASSERT_EQ(shares.size(), 2u);
    EXPECT_EQ(shares[0].name, "card of 20000");
    EXPECT_EQ(shares[0].num_ranks, 3);
    EXPECT_EQ(shares[0].kept_bytes, 10101);
    EXPECT_EQ(shares[1].num_ranks, 2);
    EXPECT_EQ(shares[1].kept_bytes, 1010);
    EXPECT_DOUBLE_EQ(shares[1].fullness(), 0.505);
}

TEST(CardShares, TheFullestIsTheFirstOfEquals) {
    EXPECT_EQ(fullest_card(card_shares({5, 6}, cards_of({10, 10}))), 1u);
    EXPECT_EQ(fullest_card(card_shares({5, 6}, cards_of({10, 100}))), 0u);
    EXPECT_EQ(fullest_card(card_shares({5, 5, 0}, cards_of({10, 10}))), 0u);
    EXPECT_EQ(fullest_card(card_shares({}, cards_of({10, 0}))), 0u);
}

TEST(CardShares, WithoutCardsThereAreNone) {
    EXPECT_TRUE(card_shares({1, 2}, {}).empty());
}

}  // namespace
}  // namespace vpp
