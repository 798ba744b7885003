#include "schedule/order_moves.hpp"

#include <set>

#include "unit/schedule/support.hpp"

namespace vpp {
namespace {

TEST(Draws, SameSeedSameNumbers) {
    Draws one(5), same(5), other(6);
    for (int i = 0; i < 100; ++i) {
        const uint64_t number = one.next();
        EXPECT_EQ(number, same.next());
        EXPECT_NE(number, other.next());
    }
    EXPECT_EQ(Draws(0).next(), mix64(mix64(0)));
}

TEST(Draws, BelowIsEven) {
    Draws draws(1);
    std::vector<int> counts(7, 0);
    for (int i = 0; i < 70000; ++i) ++counts.at(static_cast<size_t>(draws.below(7)));
    for (int count : counts) EXPECT_NEAR(count, 10000, 500);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(draws.below(1), 0);
}

// -log2 of an even number: above k in 2^-k of the cases; mean 1/ln 2, a little more by straight lines (1.5).
TEST(Draws, ExponentialHalvesWithEveryStep) {
    Draws draws(2);
    constexpr int kCount = 1 << 16;
    int64_t sum = 0;
    std::vector<int> above(4, 0);
    for (int i = 0; i < kCount; ++i) {
        const int64_t drawn = draws.exponential();
        EXPECT_GE(drawn, 0);
        EXPECT_LE(drawn, 64 * 256);
        sum += drawn;
        for (size_t k = 0; k < above.size(); ++k) above[k] += drawn > static_cast<int64_t>(256 * k) ? 1 : 0;
    }
    EXPECT_NEAR(static_cast<double>(sum) / kCount / 256, 1.5, 0.02);
    for (size_t k = 0; k < above.size(); ++k) EXPECT_NEAR(above[k], kCount >> k, kCount / 100) << k;
}

TEST(ProposeMove, IsALegalRotationOfAnyWindow) {
    const NodeLists lists{{0, 1}, {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}, {14}};
    Draws draws(3);
    std::set<int> begins, blocks, shifts;
    for (int i = 0; i < 5000; ++i) {
        const OrderMove move = propose_move(lists, draws);
        ASSERT_NE(move.rank, 2);  // one action has nowhere to go
        EXPECT_LE(0, move.begin);
        EXPECT_LT(move.begin, move.middle);
        EXPECT_LT(move.middle, move.end);
        EXPECT_LE(move.end, static_cast<int>(lists[static_cast<size_t>(move.rank)].size()));
        if (move.rank != 1) continue;
        begins.insert(move.begin);
        blocks.insert(move.middle - move.begin);
        shifts.insert(move.end - move.middle);
    }
    EXPECT_EQ(begins.size(), 11U);  // all places but the last
    EXPECT_EQ(blocks.size(), 11U);
    EXPECT_EQ(shifts.size(), 11U);
}

}  // namespace
}  // namespace vpp
